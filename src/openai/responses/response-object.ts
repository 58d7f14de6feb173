import { BOUNDS, isObject, type JsonObject } from '#wire';
import { textIn } from '../bridge/to-ask.ts';
import { isOpenJson, isWholeJson } from '../translated/wire-encoder.ts';
import type { Citation } from '#bridge';
import type { WireRequest } from '../translated/wire-request.ts';
import { isEmpty } from '../chat/reply/echo-fields.ts';
import { tokenDetails } from '../chat/reply/chat-usage.ts';
import type { ResponsesBody } from './schema.ts';
import type { ToolNames } from '../translated/tool-names.ts';
import { CONTENT } from './tools.ts';
import { errorOf } from './errors.ts';
import type { ChatEnd, ChatFault } from '../chat/reply/chat-content.ts';
import type { FinishReason } from '../chat/reply/finish-reason.ts';

export interface ResponseFacts {
  readonly id: string;
  /** Epoch seconds. */
  readonly createdAt: number;
  readonly requestBody: ResponsesBody;
  /** Epoch seconds, for the end of the response. */
  readonly now: () => number;
  readonly stored: boolean;
  readonly previous: string | null;
  readonly background: boolean;
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Members of every response object. They repeat the request. */
export function responseBase({
  id,
  createdAt,
  requestBody,
  stored,
  previous,
  background,
}: Omit<ResponseFacts, 'now'>): JsonObject {
  return {
    id,
    object: 'response',
    access_programs: null,
    created_at: createdAt,
    status: 'in_progress',
    completed_at: null,
    background,
    error: null,
    frequency_penalty: requestBody['frequency_penalty'] ?? 0,
    incomplete_details: null,
    instructions: requestBody.instructions ?? null,
    max_output_tokens: requestBody.max_output_tokens ?? null,
    model: requestBody.model,
    output: [],
    parallel_tool_calls: requestBody.parallel_tool_calls ?? true,
    presence_penalty: requestBody['presence_penalty'] ?? 0,
    previous_response_id: previous,
    reasoning: {
      effort: requestBody.reasoning?.['effort'] ?? null,
      summary: requestBody.reasoning?.['summary'] ?? null,
    },
    store: stored,
    temperature: requestBody.temperature ?? 1,
    text: requestBody.text ?? { format: { type: 'text' } },
    tool_choice: requestBody.tool_choice ?? 'auto',
    tools: requestBody.tools ?? [],
    top_p: requestBody.top_p ?? 1,
    truncation: 'disabled',
    usage: null,
    metadata: requestBody.metadata ?? {},
  };
}

/**
 * The end of a response: its status, the reason, and its usage. `now`: epoch seconds. `argumentTexts`: those of its
 * calls, which may be cut whatever reason the provider gives for the end.
 */
export function endOfResponse(
  end: ChatEnd,
  now: number,
  argumentTexts: readonly string[],
): JsonObject & { readonly status: string } {
  const usage = responseUsage(end);
  const { tollgate, fault, finish } = end;
  const more = tollgate === undefined && fault === null ? {} : { tollgate: noted(tollgate, fault) };
  const reason = fault !== null ? 'max_output_tokens' : (INCOMPLETE[finish ?? 'stop'] ?? cutReason(argumentTexts));
  return reason === undefined
    ? { status: 'completed', completed_at: now, usage, ...more }
    : { status: 'incomplete', incomplete_details: { reason }, usage, ...more };
}

/** The end of a response that failed. `end`: null if its provider speaks the wire. */
export function failedResponse(fault: ChatFault, end: ChatEnd | null): JsonObject {
  const failed = { status: 'failed', error: errorOf(fault) };
  if (end === null) return failed;
  const { tollgate } = end;
  const more = tollgate === undefined ? {} : { tollgate: noted(tollgate, end.fault) };
  return { ...failed, usage: responseUsage(end), ...more };
}

const cutReason = (argumentTexts: readonly string[]): string | undefined =>
  argumentTexts.some(isOpenJson) ? 'max_output_tokens' : undefined;

const noted = (tollgate: unknown, fault: ChatFault | null) => ({
  ...(tollgate as object | undefined),
  ...(fault === null ? {} : { note: fault }),
});

/** Why a response is incomplete; null for one that is not. */
const INCOMPLETE: Readonly<Record<FinishReason, string | null>> = {
  stop: null,
  length: 'max_output_tokens',
  tool_calls: null,
  function_call: null,
  content_filter: 'content_filter',
  error: 'max_output_tokens',
};

function responseUsage({ usage }: ChatEnd): JsonObject | null {
  if (usage === null) return null;
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    prompt_tokens_details: _details,
    completion_tokens_details: _of,
    ...more
  } = usage;
  const { cached, cacheWritten, reasoning } = tokenDetails(usage, count(prompt), count(completion));
  return {
    input_tokens: count(prompt),
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWritten },
    output_tokens: count(completion),
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: count(total),
    ...more,
    ...costNamed(more),
  };
}

/** `cost_details` with the names that clients of the Responses API require in it, beside those of chat. */
export function costNamed({ cost_details: details }: JsonObject): JsonObject {
  if (!isObject(details)) return {};
  const { upstream_inference_prompt_cost: input, upstream_inference_completions_cost: output } = details;
  return {
    cost_details: { ...details, upstream_inference_input_cost: input, upstream_inference_output_cost: output },
  };
}

export interface ShownThinking {
  /** The client asked for thinking, so its items stand where it came. Otherwise it is an item at the end. */
  readonly isAsked: boolean;
  /** The thinking is shown as a summary. */
  readonly summary: boolean;
  readonly seals: Pick<WireRequest['seals'], 'seal' | 'holds'>;
}

/** `incomplete`: the reply was cut inside the item. */
export type ItemStatus = 'completed' | 'incomplete';

/* Output items of a response that has ended. */

export const annotationOf = ({ url, title, start, end }: Citation): JsonObject => ({
  type: 'url_citation',
  url,
  title,
  start_index: start,
  end_index: end,
});

export const messageItem = (
  id: string,
  text: string,
  status: ItemStatus,
  citations: readonly Citation[] = [],
): JsonObject => ({
  id,
  type: 'message',
  role: 'assistant',
  status,
  content: [{ type: 'output_text', text, annotations: citations.map(annotationOf), logprobs: [] }],
});

/** `members`: those of the message that its provider wants back; empty for a text that it did not name. */
export const reasoningItem = (
  id: string,
  { text, members }: { readonly text: string; readonly members: JsonObject },
  { summary, seals }: ShownThinking,
  status: ItemStatus,
): JsonObject => ({
  id,
  type: 'reasoning',
  ...(status === 'completed' ? {} : { status }),
  summary: summary && text !== '' ? [{ type: 'summary_text', text }] : [],
  encrypted_content: seals.seal(isEmpty(members) ? { reasoning_content: text } : members),
});

/** `argumentText`: the arguments that the model wrote. */
export function callItem(
  id: string,
  callId: string,
  short: string,
  argumentText: string,
  registry: ToolNames,
  status: ItemStatus,
): JsonObject {
  const { name, namespace, custom } = registry.toolOf(short);
  const common = { id, call_id: callId, name, ...(namespace === null ? {} : { namespace }), status };
  const isCut = status === 'incomplete';
  return custom
    ? { ...common, type: 'custom_tool_call', input: isCut ? (contentOf(argumentText) ?? '') : inputOf(argumentText) }
    : { ...common, type: 'function_call', arguments: argumentText === '' && !isCut ? '{}' : argumentText };
}

export const statusOf = (isLast: boolean, ofResponse: string): ItemStatus =>
  isLast && ofResponse === 'incomplete' ? 'incomplete' : 'completed';

/**
 * The status of a call whose response has ended. In an incomplete response the last item is cut, and so are calls
 * whose arguments are not complete.
 */
export const statusOfCall = (argumentText: string, isLast: boolean, ofResponse: string): ItemStatus =>
  ofResponse === 'incomplete' && (isLast || !isWholeJson(argumentText)) ? 'incomplete' : 'completed';

/** The text for a custom tool. If the model wrote no JSON, it wrote the text itself. */
export const inputOf = (argumentText: string): string => contentOf(argumentText) ?? argumentText;

/** The text for a custom tool that is written as JSON; null if it is not, or not all of it. */
const contentOf = (argumentText: string): string | null => textIn(argumentText, BOUNDS.reply, CONTENT);

/** Parses a text from the inside of its JSON string. */
export const textOf = (json: string): string => JSON.parse(`"${json}"`) as string;
