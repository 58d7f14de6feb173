import { type ChatBody, REASONING_IF_LISTED } from '../chat/chat-schema.ts';
import { inOneText } from '../translated/chat-turns.ts';
import type { Json, MessagesBody } from './messages-schema.ts';
import { invalid, wordsOfBlock } from './text-of-block.ts';
import { toChatTools, type ToolOptions } from './tools.ts';
import { toChatMessages, type TurnOptions } from './turns.ts';
import { userDigest } from './user-digest.ts';

interface ChatBodyOptions extends TurnOptions, ToolOptions {
  /** The session that a header of the client names; null for none. */
  readonly session: string | null;
  /** The model is an agent or a tool. */
  readonly bridged: boolean;
}

interface TranslatedBody {
  readonly body: ChatBody;
  /** Names of things in the request that no provider gets. */
  readonly dropped: readonly string[];
}

/** Fields that are copied, by their name in a chat request. */
const COPIED: readonly (readonly [from: string, to: string])[] = [
  ['max_tokens', 'max_tokens'],
  ['temperature', 'temperature'],
  ['top_p', 'top_p'],
  ['top_k', 'top_k'],
  ['stop_sequences', 'stop'],
  ['models', 'models'],
  ['provider', 'provider'],
  ['max_cost', 'max_cost'],
  ['max_tool_rounds', 'max_tool_rounds'],
  ['tollgate', 'tollgate'],
];

/**
 * Claude Code begins its prompt with a line about itself. The line changes with each version, so it would spoil
 * caches.
 */
const BILLING_LINE = 'x-anthropic-billing-header:';

/**
 * Turns a request of the Messages API into a chat request. Throws GatewayError `invalid_request` for malformed
 * content, and `unprocessable` for something that only Anthropic can do.
 */
export function toChatBody(asked: MessagesBody, options: ChatBodyOptions): TranslatedBody {
  const dropped: string[] = [];
  const body: ChatBody = { model: asked.model, messages: [] };
  for (const [from, to] of COPIED) if (asked[from] !== undefined && asked[from] !== null) body[to] = asked[from];
  if (asked.stream === true) body.stream = true;
  const system = systemOf(asked.system);
  const messages = toChatMessages(asked, options);
  body.messages = [
    ...(system === '' ? [] : [{ role: 'system', content: system }]),
    ...(options.bridged ? messages : messages.map(inOneText)),
  ];
  if (messages.length === 0) throw invalid('messages', 'at least one message with content');
  addTools(body, asked, options, dropped);
  addThinking(body, asked);
  addFormat(body, asked);
  const user = asked.metadata?.['user_id'];
  if (typeof user === 'string') body['user'] = userDigest(user);
  const session = asked.session_id ?? options.session;
  if (session !== null) body.session_id = session;
  return { body, dropped };
}

function systemOf(system: MessagesBody['system']): string {
  if (typeof system === 'string') return system;
  return (system ?? [])
    .map(wordsOfBlock)
    .filter((text) => text !== '' && !text.startsWith(BILLING_LINE))
    .join('\n\n');
}

function addTools(body: ChatBody, asked: MessagesBody, options: ChatBodyOptions, dropped: string[]): void {
  const { tools, choice, parallel, dropped: lost } = toChatTools(asked, options);
  dropped.push(...lost);
  // Coding agents send their tools to every model. An agent has its own tools.
  const useless = options.bridged && (choice === undefined || choice === 'auto' || choice === 'none');
  if (useless && tools.length > 0) return void dropped.push('tools');
  if (tools.length > 0) body.tools = tools;
  if (choice !== undefined) body['tool_choice'] = choice;
  if (parallel !== undefined) body['parallel_tool_calls'] = parallel;
}

/**
 * Adds `reasoning`, which only models that list it get. Coding agents ask every model to think, and a model that
 * cannot think would refuse the request.
 */
function addThinking(body: ChatBody, { thinking, output_config: output }: MessagesBody): void {
  const reasoning: Record<string, unknown> = {};
  if (thinking?.type === 'enabled' && typeof thinking['budget_tokens'] === 'number')
    reasoning['max_tokens'] = thinking['budget_tokens'];
  else if (thinking) reasoning['enabled'] = thinking.type !== 'disabled';
  const effort = output?.['effort'];
  if (effort !== undefined && effort !== null) {
    if (typeof effort !== 'string' || effort.length > 32) throw invalid('output_config.effort', 'a word such as "low"');
    reasoning['effort'] = effort;
  }
  if (Object.keys(reasoning).length === 0) return;
  body['reasoning'] = reasoning;
  body[REASONING_IF_LISTED] = true;
}

function addFormat(body: ChatBody, { output_config: output, output_format: older }: MessagesBody): void {
  const format = (output?.['format'] ?? older) as Json | null | undefined;
  if (format === undefined || format === null) return;
  const { type, schema } = format;
  if (type !== 'json_schema') throw invalid('output_config.format.type', 'json_schema');
  if (typeof schema !== 'object' || schema === null) throw invalid('output_config.format.schema', 'a JSON schema');
  body.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } };
}
