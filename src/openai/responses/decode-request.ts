import { GatewayError } from '#errors';
import { isObject, type JsonObject } from '#wire';
import type { ChatBody, ChatMessage, ContentPart } from '../chat/chat-schema.ts';
import { GAP, invalid, addMissing, addResult, addUser, reminderOf } from '../translated/chat-turns.ts';
import type { WireRequest } from '../translated/wire-request.ts';
import { ChatDraft, readFields } from '../translated/chat-draft.ts';
import { COMPACTION, HOSTED, type ResponsesBody } from './schema.ts';
import { isNoArguments } from '../bridge/to-ask.ts';
import { toChatTools, type ResponsesToolOptions, CONTENT } from './tools.ts';
import { EchoFields, isEmpty } from '../chat/reply/echo-fields.ts';
import { keepsNone } from './kept/errors.ts';
import { pictureUrl } from '../chat/request/picture-url.ts';

/** Fields that are copied, and those that are read here or by the gateway, or change nothing here. */
const FIELDS = readFields(
  [
    ['max_output_tokens', 'max_completion_tokens'],
    ['temperature', 'temperature'],
    ['top_p', 'top_p'],
    ['user', 'user'],
    ['safety_identifier', 'safety_identifier'],
    ['service_tier', 'service_tier'],
    ['metadata', 'metadata'],
  ],
  [
    'input',
    'instructions',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'text',
    'reasoning',
    'prompt_cache_key',
    'store',
    'background',
    'previous_response_id',
    'truncation',
    'include',
    'stream_options',
  ],
);

/** Turns a request of the Responses API into a chat request. Throws GatewayError. */
export function decodeRequest(requestBody: ResponsesBody, request: WireRequest): ChatDraft {
  const options = { request };
  const draft = new ChatDraft(requestBody, request, FIELDS);
  const { body } = draft;
  const { system, chat, tools: ofItems, untranslatable } = readItems(requestBody.input, options);
  if (chat.length === 0 && untranslatable === null)
    throw invalid('input', 'a text, or items with a message of the user');
  draft.say([requestBody.instructions ?? '', ...system].filter((text) => text !== '').join(GAP), chat);
  draft.untranslatable = untranslatable;
  addTools(draft, [...(requestBody.tools ?? []), ...ofItems], requestBody, options);
  addText(body, requestBody.text);
  addReasoning(draft, requestBody.reasoning);
  const session = requestBody.session_id ?? requestBody.prompt_cache_key ?? request.sessionIn('session-id');
  if (session !== null) body.session_id = session;
  return draft;
}

function addTools(
  draft: ChatDraft,
  inputItems: readonly JsonObject[],
  requestBody: ResponsesBody,
  options: ResponsesToolOptions,
): void {
  const { tools, choice, dropped } = toChatTools(inputItems, requestBody, options);
  draft.dropped.push(...dropped);
  if (!draft.giveTools(tools, choice)) return;
  if (typeof requestBody.parallel_tool_calls === 'boolean')
    draft.body['parallel_tool_calls'] = requestBody.parallel_tool_calls;
  if (choice !== undefined) draft.body['tool_choice'] = choice;
}

function addText(body: ChatBody, text: ResponsesBody['text']): void {
  const { format, verbosity } = text ?? {};
  if (typeof verbosity === 'string') body['verbosity'] = verbosity;
  if (format === undefined || format === null) return;
  const { type, name, schema, strict } = format as JsonObject;
  if (type === 'text') return;
  if (type === 'json_object') return void (body.response_format = { type });
  if (type !== 'json_schema') throw invalid('text.format.type', 'text, json_object or json_schema');
  if (typeof schema !== 'object' || schema === null) throw invalid('text.format.schema', 'a JSON schema');
  const formatName = typeof name === 'string' ? name : 'answer';
  const strictly = typeof strict === 'boolean' ? { strict } : {};
  body.response_format = { type, json_schema: { name: formatName, schema, ...strictly } };
}

function addReasoning(draft: ChatDraft, reasoning: ResponsesBody['reasoning']): void {
  const effort = reasoning?.['effort'];
  if (effort === undefined || effort === null) return;
  if (typeof effort !== 'string' || effort.length > 32) throw invalid('reasoning.effort', 'a word such as "low"');
  draft.think({ effort }, ['reasoning']);
}

interface ReadConversation {
  /** Instructions that come before the first turn. */
  readonly system: string[];
  readonly chat: ChatMessage[];
  readonly tools: readonly JsonObject[];
  /** Why only a provider that speaks this API can serve it; null if others can. */
  readonly untranslatable: GatewayError | null;
}

interface TranslationState {
  readonly system: string[];
  readonly chat: ChatMessage[];
  readonly options: ResponsesToolOptions;
  readonly tools: JsonObject[];
  untranslatable: GatewayError | null;
  /** Instructions in the middle of the conversation, for the next turn of the user. */
  reminders: ContentPart[];
  /** Thinking before the assistant's next message, or behind its last. */
  readonly thoughts: EchoFields;
  /** The members in the ids of the calls of the assistant's last message. */
  ofIds: JsonObject;
}

/** Turns the items of a request into a conversation. Throws GatewayError `invalid_request`. */
export function readItems(input: ResponsesBody['input'], options: ResponsesToolOptions): ReadConversation {
  const state: TranslationState = {
    system: [],
    chat: [],
    options,
    tools: [],
    untranslatable: null,
    reminders: [],
    thoughts: new EchoFields(Infinity),
    ofIds: {},
  };
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? []);
  withoutContainers(items).forEach((item, index) => readItem(state, item, `input[${index}]`));
  endThoughts(state);
  addUser(state.chat, state.reminders);
  return state;
}

function readItem(state: TranslationState, item: JsonObject, at: string): void {
  const { chat, options } = state;
  const { isNative, leftOut } = options.request;
  const { type = item['role'] === undefined ? 'item_reference' : 'message' } = item;
  switch (type) {
    case 'message':
      return readMessage(state, item, at);
    case 'function_call':
    case 'custom_tool_call':
      return readCall(state, item, at);
    case 'function_call_output':
    case 'custom_tool_call_output':
      return readOutput(state, item, at);
    case 'reasoning': {
      const sealed = item['encrypted_content'];
      const thought = typeof sealed === 'string' ? options.request.seals.thought('', sealed) : null;
      if (thought !== null) state.thoughts.add(thought);
      else if (isFilled(sealed) || isFilled(item['content']) || isFilled(item['summary'])) leftOut.add(type);
      return;
    }
    case 'computer_call_output': {
      const screen = isObject(item['output']) ? item['output'] : {};
      // Files at a provider are refused with words of their own, for all places that may name one.
      if ((screen['file_id'] ?? null) !== null) return;
      return addUser(chat, [pictureIn(screen['image_url'], screen['detail'], `${at}.output.image_url`)]);
    }
    case 'additional_tools':
      if (Array.isArray(item['tools'])) state.tools.push(...(item['tools'] as JsonObject[]));
      return;
    case 'item_reference':
      throw keepsNone(at, at);
    default: {
      if (!HOSTED.has(type as string)) {
        if (!isNative) throw invalid(`${at}.type`, `the type of an item, and is ${shownType(type)}`);
        leftOut.add(at);
      } else if (COMPACTION.has(type as string))
        state.untranslatable ??= notCompacted(options.request, type as string, at);
      else leftOut.add(type as string);
      const text = textOf(item['content'] ?? item['output']);
      if (text !== '') addUser(chat, [{ type: 'text', text }]);
    }
  }
}

/** An item holds other values than an empty text or list. */
const isFilled = (value: unknown): boolean => (typeof value === 'string' || Array.isArray(value)) && value.length > 0;

/**
 * The error for an item that stands for a conversation, or asks for such an item: leaving it out would lose the
 * conversation. It is thrown if no provider of the model can read it.
 */
const notCompacted = ({ isNative, model }: WireRequest, type: string, at: string): GatewayError =>
  needsNative(
    isNative,
    at,
    `${at} is of type ${type}, which only providers that speak the Responses API understand, and ${model} has none that can serve this request: call another model, or send the conversation itself, or a summary that a request asks for in words`,
  );

/** The error of the providers that do not speak the Responses API. Throws it if no other provider is there. */
export function needsNative(isNative: boolean, param: string, words: string): GatewayError {
  // Codex sends a request again that is refused with another status than 400.
  const error = new GatewayError(isNative ? 'unprocessable' : 'invalid_request', words, { param });
  if (isNative) return error;
  throw error;
}

const shownType = (type: unknown): string =>
  typeof type === 'string' ? JSON.stringify(type.slice(0, 64).toWellFormed()) : 'no text';

function readMessage(state: TranslationState, { role, content }: JsonObject, at: string): void {
  const parts = partsOf(content, `${at}.content`);
  switch (role) {
    case 'system':
    case 'developer': {
      const text = parts.map((part) => part.text ?? '').join(GAP);
      if (state.chat.length === 0) state.system.push(text);
      else state.reminders.push(...reminderOf(text));
      return;
    }
    case 'user':
      endThoughts(state);
      addUser(state.chat, [...parts, ...state.reminders]);
      state.reminders = [];
      return;
    case 'assistant': {
      const message = assistant(state);
      const text = parts.map((part) => part.text ?? '').join('');
      message.content = [message.content, text].filter((one) => one).join(GAP);
      return;
    }
    default:
      throw invalid(`${at}.role`, 'one of user, assistant, system, developer');
  }
}

/** The assistant's unfinished message, or a new one. */
function assistant(state: TranslationState): ChatMessage {
  const { chat, thoughts } = state;
  const { members } = thoughts;
  thoughts.clear();
  const last = chat.at(-1);
  if (last?.role === 'assistant' && state.reminders.length === 0) {
    if (isEmpty(members)) return last;
    // Thinking between two calls of one turn. The results of both calls follow together, so the message stays the
    // same.
    if (last['tool_calls'] !== undefined) {
      goOnThinking(last, members);
      return last;
    }
  }
  addUser(chat, state.reminders);
  state.reminders = [];
  const message: ChatMessage = { role: 'assistant', content: null };
  Object.assign(message, members);
  chat.push(message);
  return message;
}

/**
 * Thinking behind the assistant's message belongs to it: the gateway puts it there if its client did not ask for it.
 * Otherwise the turn was not finished, and its thinking is dropped.
 */
function endThoughts({ chat, thoughts, ofIds }: TranslationState): void {
  const last = chat.at(-1);
  const { members } = thoughts;
  if (last?.role === 'assistant' && !isEmpty(members)) {
    // What an id has may be the beginning of it.
    for (const name of Object.keys(members)) if (last[name] === ofIds[name]) last[name] = undefined;
    goOnThinking(last, members);
  }
  thoughts.clear();
}

function goOnThinking(message: ChatMessage, members: JsonObject): void {
  const all = new EchoFields(Infinity);
  all.add(message);
  all.add(members);
  Object.assign(message, all.members);
}

function readCall(state: TranslationState, item: JsonObject, at: string): void {
  const { type, call_id: id, name, namespace, arguments: argumentValue, input } = item;
  if (typeof id !== 'string' || id === '') throw invalid(`${at}.call_id`, 'the id of the call');
  if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'the name of a tool');
  const custom = type === 'custom_tool_call';
  const text = custom ? JSON.stringify({ [CONTENT]: input }) : argumentValue;
  if (typeof text !== 'string') throw invalid(`${at}.arguments`, 'a string');
  const short = state.options.request.toolNames.short(name, typeof namespace === 'string' ? namespace : null, custom);
  const message = assistant(state);
  const calls = (message['tool_calls'] ??= []) as JsonObject[];
  const echoedCall = state.options.request.seals.call(id);
  addMissing(message, echoedCall.message);
  if (!isEmpty(echoedCall.message)) state.ofIds = echoedCall.message;
  calls.push({
    ...echoedCall.call,
    id: echoedCall.id,
    type: 'function',
    function: { name: short, arguments: isNoArguments(text) ? '{}' : text },
  });
}

function readOutput(state: TranslationState, { call_id: callId, output }: JsonObject, at: string): void {
  if (typeof callId !== 'string' || callId === '') throw invalid(`${at}.call_id`, 'the id of the call');
  const { id } = state.options.request.seals.call(callId);
  endThoughts(state);
  const parts = partsOf(output ?? '', `${at}.output`);
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text!] : ['[see the next message]']));
  addResult(state.chat, { role: 'tool', tool_call_id: id, content: texts.join('\n') });
  // Chat models take no images in a tool result, so images follow as text of the user.
  for (const part of parts)
    if (part.type !== 'text') state.reminders.push({ type: 'text', text: `Of tool result ${id}:` }, part);
}

function partsOf(content: unknown, at: string): ContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) throw invalid(at, 'a string or an array of parts');
  return content.flatMap((part: unknown, index) => partOf(part, `${at}[${index}]`));
}

/** A picture as a part of a chat message. Throws GatewayError `invalid_request`. */
function pictureIn(picture: unknown, detail: unknown, at: string): ContentPart {
  const url = typeof picture === 'string' ? pictureUrl(picture) : null;
  if (url === null) throw invalid(at, 'an https URL or a data URL: this gateway stores no files');
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' ? { detail } : {}) } };
}

function partOf(part: unknown, at: string): ContentPart[] {
  if (!isObject(part)) throw invalid(at, 'a part such as {"type": "input_text", "text": "…"}');
  const { type, text, refusal, image_url: url, detail, file_data: data, file_url: fileUrl, filename } = part;
  switch (type) {
    case 'input_image':
      return [pictureIn(url, detail, `${at}.image_url`)];
    case 'input_file': {
      const file = data ?? fileUrl;
      if (typeof file !== 'string')
        throw invalid(at, 'a file with file_data or file_url: this gateway stores no files');
      return [{ type: 'file', file: { filename: typeof filename === 'string' ? filename : 'file', file_data: file } }];
    }
    case 'input_audio': {
      const audio = part['input_audio'];
      if (!isObject(audio) || typeof audio['data'] !== 'string' || typeof audio['format'] !== 'string')
        throw invalid(`${at}.input_audio`, 'an object such as {"data": "<base64>", "format": "wav"}');
      return [{ type: 'input_audio', input_audio: { data: audio['data'], format: audio['format'] } }];
    }
    case 'refusal':
      return typeof refusal === 'string' && refusal !== '' ? [{ type: 'text', text: refusal }] : [];
    default:
      if (typeof text !== 'string') throw invalid(`${at}.text`, 'a string');
      return text === '' ? [] : [{ type: 'text', text }];
  }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part: unknown) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join(GAP);
}

/**
 * Items that report what ran in a container at OpenAI. Clients send them back with the conversation. They name the
 * container, so it would be used again. All consumers share the account, so anybody who learns the name could use
 * the container. That is why the model gets a text about the run instead.
 */
const RUNS: ReadonlySet<unknown> = new Set(['code_interpreter_call', 'shell_call', 'shell_call_output']);

/** Whether an item is a run in a container. A shell that the client runs has no container. */
export const isContainerRun = (item: unknown): item is JsonObject =>
  isObject(item) && RUNS.has(item['type']) && (typeof item['container_id'] === 'string' || isInContainer(item));

const isInContainer = ({ environment }: JsonObject): boolean =>
  isObject(environment) && environment['type'] === 'container_reference';

/** Replaces such items of a conversation by text of the model. Returns the same array without such items. */
export function withoutContainers<Item>(input: readonly Item[]): readonly (Item | JsonObject)[] {
  if (!input.some(isContainerRun)) return input;
  const runs = new Set(input.flatMap((item) => (isContainerRun(item) ? [item['call_id']] : [])));
  const belongs = (item: unknown): item is JsonObject =>
    isContainerRun(item) || (isObject(item) && item['type'] === 'shell_call_output' && runs.has(item['call_id']));
  return input.map((item) => (belongs(item) ? { role: 'assistant', content: wordsOfRun(item) } : item));
}

/** Describes what ran, and its output. Images are left out. */
function wordsOfRun({ type, code, action, output, outputs }: JsonObject): string {
  const logs = Array.isArray(outputs) ? outputs.filter((one) => isObject(one) && one['type'] === 'logs') : outputs;
  return `[${String(type)}: ${JSON.stringify({ code, action, output, outputs: logs })}]`;
}
