import type { JsonObject } from '#wire';
import type { ChatBody } from '../chat/chat-schema.ts';
import { invalid, unread } from '../translated/chat-turns.ts';
import { ChatDraft, readFields } from '../translated/chat-draft.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import { textOf, toChatMessages } from './conversation.ts';
import type { GeminiBody } from './schema.ts';
import { toJsonSchema } from './json-schema.ts';
import { toChatTools } from './tools.ts';

const FIELDS = readFields(
  [['session_id', 'session_id']],
  ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig'],
);

/** Members of `generationConfig` that are copied, by their names in a chat request. */
const SAMPLING: readonly (readonly [from: string, to: string])[] = [
  ['maxOutputTokens', 'max_tokens'],
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['topK', 'top_k'],
  ['stopSequences', 'stop'],
  ['seed', 'seed'],
  ['presencePenalty', 'presence_penalty'],
  ['frequencyPenalty', 'frequency_penalty'],
];

const CONFIG_READ: ReadonlySet<string> = new Set([
  ...SAMPLING.map(([from]) => from),
  'candidateCount',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'responseModalities',
  'thinkingConfig',
]);

export function nameOfField(chatField: string): string {
  const [from] = SAMPLING.find(([, to]) => to === chatField) ?? [null];
  if (from !== null) return `generationConfig.${from}`;
  return chatField === 'response_format' ? 'generationConfig.responseMimeType' : chatField;
}

/**
 * Turns a request of the Gemini API into a chat request. Throws GatewayError `invalid_request` for malformed content,
 * and `unprocessable` for something that only Google can do.
 */
export function decodeRequest(requestBody: GeminiBody, request: WireRequest): ChatDraft {
  refuseKept(requestBody);
  const draft = new ChatDraft(requestBody, request, FIELDS);
  const messages = toChatMessages(requestBody, request);
  if (messages.length === 0) throw invalid('contents', 'at least one content with parts');
  draft.say(textOf(requestBody.systemInstruction), messages);
  addTools(draft, requestBody, request);
  addConfig(draft, requestBody.generationConfig ?? {});
  return draft;
}

/** Nothing that a request refers to is kept for its account at a provider. */
function refuseKept({ cachedContent }: GeminiBody): void {
  if ((cachedContent ?? null) !== null)
    throw invalid('cachedContent', 'absent: this gateway keeps no contents. Send the contents themselves');
}

function addTools(draft: ChatDraft, requestBody: GeminiBody, request: WireRequest): void {
  const { tools, choice } = toChatTools(requestBody, request);
  if (draft.giveTools(tools, choice) && choice !== undefined) draft.body['tool_choice'] = choice;
}

function addConfig(draft: ChatDraft, config: JsonObject): void {
  const { body, dropped } = draft;
  for (const [from, to] of SAMPLING) {
    const value = config[from] ?? null;
    if (value !== null && !(Array.isArray(value) && value.length === 0)) body[to] = value;
  }
  const lost = unread(config, CONFIG_READ);
  dropped.push(...lost.map((name) => `generationConfig.${name}`));
  addFormat(draft, config);
  addModalities(body, config, dropped);
  addThinking(draft, (config['thinkingConfig'] ?? {}) as JsonObject);
}

function addFormat(draft: ChatDraft, config: JsonObject): void {
  const { body, dropped } = draft;
  const { responseMimeType: media, responseSchema: own, responseJsonSchema: standard } = config;
  const schema = standard ?? toJsonSchema(own) ?? null;
  if (schema === null) {
    if (media === 'application/json') body.response_format = { type: 'json_object' };
    else if (typeof media === 'string' && media !== 'text/plain') dropped.push('generationConfig.responseMimeType');
    return;
  }
  if (media !== 'application/json')
    throw invalid('generationConfig.responseMimeType', '"application/json" for an answer with a schema');
  if (typeof schema !== 'object') throw invalid('generationConfig.responseJsonSchema', 'a JSON schema');
  draft.answerIn(schema);
}

function addModalities(body: ChatBody, { responseModalities: modalityNames }: JsonObject, dropped: string[]): void {
  const kinds = ((modalityNames ?? []) as readonly string[]).map((kind) => kind.toLowerCase());
  if (kinds.every((kind) => kind === 'text')) return;
  if (kinds.every((kind) => kind === 'text' || kind === 'image')) body['modalities'] = kinds;
  else dropped.push('generationConfig.responseModalities');
}

function addThinking(draft: ChatDraft, thinking: JsonObject): void {
  const { thinkingBudget: budget, thinkingLevel: level, includeThoughts: shows } = thinking;
  const reasoning: Record<string, unknown> = {};
  if (typeof budget === 'number' && budget > 0) reasoning['max_tokens'] = budget;
  else if (typeof budget === 'number') reasoning['enabled'] = budget !== 0;
  else if (shows === true) reasoning['enabled'] = true;
  if (typeof level === 'string' && level !== 'THINKING_LEVEL_UNSPECIFIED') reasoning['effort'] = level.toLowerCase();
  draft.think(reasoning, ['generationConfig.thinkingConfig']);
}
