import { type ChatBody, REASONING_IF_LISTED } from '../chat/chat-schema.ts';
import { GAP, inOneText } from '../translated/chat-turns.ts';
import { type ItemOptions, readItems } from './items.ts';
import type { Json, ResponsesBody } from './responses-schema.ts';
import { invalid, toChatTools, type ToolOptions } from './tools.ts';

interface ChatBodyOptions extends ItemOptions, ToolOptions {
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
  ['max_output_tokens', 'max_completion_tokens'],
  ['temperature', 'temperature'],
  ['top_p', 'top_p'],
  ['user', 'user'],
  ['safety_identifier', 'safety_identifier'],
  ['metadata', 'metadata'],
  ['models', 'models'],
  ['provider', 'provider'],
  ['max_cost', 'max_cost'],
  ['max_tool_rounds', 'max_tool_rounds'],
  ['tollgate', 'tollgate'],
];

/** Turns a request of the Responses API into a chat request. Throws GatewayError. */
export function toChatBody(asked: ResponsesBody, options: ChatBodyOptions): TranslatedBody {
  const body: ChatBody = { model: asked.model, messages: [] };
  for (const [from, to] of COPIED) if (asked[from] !== undefined && asked[from] !== null) body[to] = asked[from];
  if (asked.stream === true) body.stream = true;
  const { system, chat, tools: ofItems } = readItems(asked.input, options);
  if (chat.length === 0) throw invalid('input', 'a text, or items with a message of the user');
  const told = [asked.instructions ?? '', ...system].filter((text) => text !== '').join(GAP);
  body.messages = [
    ...(told === '' ? [] : [{ role: 'system', content: told }]),
    ...(options.bridged ? chat : chat.map(inOneText)),
  ];
  const dropped = addTools(body, [...(asked.tools ?? []), ...ofItems], asked, options);
  addText(body, asked.text);
  addReasoning(body, asked.reasoning);
  const session = asked.session_id ?? asked.prompt_cache_key ?? options.session;
  if (session !== null) body.session_id = session;
  return { body, dropped };
}

function addTools(
  body: ChatBody,
  given: readonly Json[],
  asked: ResponsesBody,
  options: ChatBodyOptions,
): readonly string[] {
  const { tools, choice, dropped } = toChatTools(given, asked, options);
  // Coding agents send their tools to every model. An agent has its own tools.
  const useless = options.bridged && (choice === undefined || choice === 'auto' || choice === 'none');
  if (useless && tools.length > 0) return [...dropped, 'tools'];
  if (tools.length > 0) {
    body.tools = tools;
    if (typeof asked.parallel_tool_calls === 'boolean') body['parallel_tool_calls'] = asked.parallel_tool_calls;
  }
  if (choice !== undefined) body['tool_choice'] = choice;
  return dropped;
}

function addText(body: ChatBody, text: ResponsesBody['text']): void {
  const { format, verbosity } = text ?? {};
  if (typeof verbosity === 'string') body['verbosity'] = verbosity;
  if (format === undefined || format === null) return;
  const { type, name, schema, strict } = format as Json;
  if (type === 'text') return;
  if (type === 'json_object') return void (body.response_format = { type });
  if (type !== 'json_schema') throw invalid('text.format.type', 'text, json_object or json_schema');
  if (typeof schema !== 'object' || schema === null) throw invalid('text.format.schema', 'a JSON schema');
  const named = typeof name === 'string' ? name : 'answer';
  const strictly = typeof strict === 'boolean' ? { strict } : {};
  body.response_format = { type, json_schema: { name: named, schema, ...strictly } };
}

/**
 * Adds `reasoning`, which only models that list it get. Coding agents ask every model to think, and a model that
 * cannot think would refuse the field.
 */
function addReasoning(body: ChatBody, reasoning: ResponsesBody['reasoning']): void {
  const effort = reasoning?.['effort'];
  if (effort === undefined || effort === null) return;
  if (typeof effort !== 'string' || effort.length > 32) throw invalid('reasoning.effort', 'a word such as "low"');
  body['reasoning'] = { effort };
  body[REASONING_IF_LISTED] = true;
}
