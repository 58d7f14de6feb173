// How a call ends: with a response and its price, free, too large, or with a failure of the provider.

import { GatewayError } from '#errors';
import { isObject, splice, UpstreamFailure } from '#wire';
import {
  credentialFailure,
  parseMessage,
  refusesCredentials,
  type RequestMessage,
  type ResponseMessage,
  resultText,
} from '#json-rpc';
import {
  clampReportedUsage,
  measuredUse,
  ONE_CALL,
  readReportedUsage,
  type MeasuredWork,
  type ReportedUsage,
  type UpstreamReply,
  cutReply,
} from '#call';
import type { Offer } from '#catalog';
import { printable } from '#security';
import type { Price } from '#billing/amounts';
import { resultShape } from '../shapes/results.ts';
import { readable } from '../shapes/shape.ts';
import { statusInSession, toMcpError } from '../wire/errors-mcp.ts';
import type { McpEnd, McpResponse, McpRequest, ServerPlace } from './mcp-request.ts';

/** The member of a result's `_meta` in which a tool reports its use: `{"completion": 120, "second": 3}`. */
const USAGE_META = 'tollgate/usage';

const FREE = { usage: null, outcome: 'free', estimated: false, flags: [] } as const;

export const freeEnd = (result: McpResponse | null, finishReason: string | null = null): McpEnd => ({
  ...FREE,
  finishReason,
  result,
});

/** The finish reason of a call whose result is a task. */
export const TASK = 'task';

/**
 * Makes the end of a call from its server's response. An error, a result with `isError`, and every method but
 * `tools/call` cost nothing. A result that asks for input keeps the lock for the next round. Every other result is
 * charged: by the reported use if the offer is priced by use, else per call. Throws UpstreamFailure if a client could
 * not use the response.
 */
export function toEnd(
  request: RequestMessage,
  offer: Offer,
  response: ResponseMessage,
  mcpResponse: McpResponse,
): McpEnd {
  const { result, error } = response;
  const answer = withUsableStatus(mcpResponse, response);
  if (error !== undefined) return freeEnd(answer, `error ${error.code}`);
  if (request.method !== 'tools/call') return freeEnd(answer);
  const { isError, resultType, _meta: meta, task } = result as Readonly<Record<string, unknown>>;
  if (isError === true) return freeEnd(answer, 'isError');
  if (resultType === 'input_required') return { ...freeEnd(answer, resultType), outcome: 'pending' };
  // If the client can ask for the task's outcome later, the provider adapter keeps the task.
  if (resultType === 'task' || (isTask(task) && (result as { content?: unknown }).content === undefined))
    return freeEnd(answer, TASK);
  const { usage, flags } = usageOf(offer, request.params?.['name'], meta);
  return { usage, outcome: 'complete', estimated: false, finishReason: 'complete', flags, result: answer };
}

/**
 * Makes the end of a call from its server's response, as `toEnd` does. A result that clients can read only without
 * nulls, or with a member that means nothing new, is made so before `toResponse` makes the answer of it. A result that
 * no client can read is an error, free, and flags the provider. Throws UpstreamFailure.
 */
export function toServerEnd(
  mcpRequest: Pick<McpRequest, 'message' | 'client'>,
  { offer, facts: { era } }: Pick<ServerPlace, 'offer' | 'facts'>,
  response: ResponseMessage,
  toResponse: (response: ResponseMessage) => McpResponse,
): McpEnd {
  const { message, client } = mcpRequest;
  const { result, text, members } = response;
  const type = era === 'modern' && isObject(result) ? (result['resultType'] ?? null) : null;
  if (type !== null && !RESULT_TYPES.has(type))
    return unreadableEnd(mcpRequest, offer, `nobody knows its resultType ${printable(JSON.stringify(type), TYPE_MAX)}`);
  const shape = isObject(result) ? resultShape(message.method, era, client, result) : null;
  const end = (read: ResponseMessage) =>
    toEnd(message, offer, era === 'legacy' ? asComplete(read) : read, toResponse(read));
  if (shape === null || shape(result, null)) return end(response);
  const span = members.get('result')!;
  const read = readable(text.slice(span.start, span.end), result, shape);
  if ('fault' in read) return unreadableEnd(mcpRequest, offer, read.fault);
  const mended = splice(text, [{ ...span, text: read.text }]);
  return end(parseMessage(mended, { ...response.value, result: read.value }) as ResponseMessage);
}

/** The types of results of the protocol, and of its extension for tasks. */
const RESULT_TYPES: ReadonlySet<unknown> = new Set(['complete', 'input_required', TASK]);
const TYPE_MAX = 64;

function unreadableEnd(
  { message: { method, idText }, client }: Pick<McpRequest, 'message' | 'client'>,
  { provider }: Offer,
  fault: string,
): McpEnd {
  const why = `${provider.name} answered ${method} with a result that cannot be read: ${fault}. Nothing is charged`;
  const error = toMcpError(new GatewayError('provider_unavailable', why), idText);
  const status = client === 'legacy' ? statusInSession(error) : error.status;
  return { ...freeEnd({ text: error.text, status }, 'unreadable'), flags: ['malformed_reply'] };
}

/**
 * The response of a legacy server, for `toEnd`. Its result is always complete, because legacy revisions have no
 * `resultType`.
 */
function asComplete(response: ResponseMessage): ResponseMessage {
  const { result } = response;
  if (!isObject(result) || result['resultType'] === undefined) return response;
  return { ...response, result: { ...result, resultType: 'complete' } };
}

/**
 * Ends a `tools/call` whose answer is larger than the gateway accepts. The tool has done its work, and the client may
 * have asked for that much. So the call is charged by what the gateway measured, and the client gets a result that says
 * why.
 */
export function tooLargeEnd(
  { message, client }: McpRequest,
  { priceCap }: Offer,
  failure: UpstreamFailure,
  durationMs: number,
): McpEnd {
  const text = tooLargeText(failure);
  const result = {
    ...(client === 'modern' ? { resultType: 'complete' } : {}),
    isError: true,
    content: [{ type: 'text', text }],
  };
  return {
    usage: measuredUse(failure, durationMs),
    outcome: 'cut',
    estimated: priceCap !== null,
    finishReason: 'too_large',
    flags: [],
    cut: cutReply({ reason: 'too_large', message: failure.message }, 'nothing'),
    result: { text: resultText(message.idText, JSON.stringify(result)), status: 200 },
  };
}

export const tooLargeText = ({ message }: UpstreamFailure): string =>
  `The tool ran and the call was charged, but ${message}, so the result cannot be returned. Request less data`;

/**
 * The response with status 200 for a result, because clients read no result with another status but would pay for it.
 * Throws UpstreamFailure if the status or the result is of no use to a client.
 */
function withUsableStatus(answer: McpResponse, { result, error }: ResponseMessage): McpResponse {
  const { status } = answer;
  // The message of an error is scrubbed, and the rest is not.
  if (refusesCredentials(status)) throw refusedCredentials(status, error?.message);
  if (error !== undefined) return status >= 400 && status < 600 ? answer : withStatus200(answer);
  if (!isObject(result)) throw providerFailure('its result is not an object', status);
  if (status >= 400) throw providerFailure(`it answered with status ${status} and a result`, status);
  return withStatus200(answer);
}

const withStatus200 = (answer: McpResponse): McpResponse =>
  answer.status === 200 ? answer : { ...answer, status: 200 };

const isTask = (task: unknown) => typeof task === 'object' && task !== null && 'taskId' in task;

/** Whether the price of the tool depends on the use that its server reports. */
const isByUse = (offer: Offer, tool: unknown): boolean => offer.priceCap !== null && !hasOwnPrice(offer, tool);

/**
 * The use of one call. If the tool is priced by use, this is the use that the server reports. Without a report the call
 * is free, and gets a flag.
 */
export function usageOf(offer: Offer, tool: unknown, meta: unknown): ReportedUsage {
  if (!isByUse(offer, tool)) return ONE_CALL;
  return readReportedUsage((meta as Readonly<Record<string, unknown>> | undefined)?.[USAGE_META]);
}

/** The end of a `tools/call`. A use that the server reported is compared with what the gateway measured. */
export function clampToMeasured(end: McpEnd, { message }: McpRequest, offer: Offer, elapsedMs: number): McpEnd {
  const { usage, outcome, result } = end;
  if (usage === null || outcome !== 'complete' || result === null || !isByUse(offer, message.params?.['name']))
    return end;
  const { text } = result;
  const work: MeasuredWork = { elapsedMs, bytesIn: Buffer.byteLength(message.text), bytesOut: Buffer.byteLength(text) };
  return { ...end, ...clampReportedUsage(end, offer, work) };
}

/** A failure of the provider. Never retryable, because a tool may have acted. `status`: null without an HTTP status. */
export const providerFailure = (what: string, status: number | null, cause?: unknown): UpstreamFailure =>
  new UpstreamFailure(what, {
    status,
    retryable: false,
    attributedTo: 'provider',
    ...(cause === undefined ? {} : { cause }),
  });

/** The failure of a reply that ended without a response. `unread`: one of its events was not a message. */
export const withoutResponse = (status: number | null, unread = false): UpstreamFailure =>
  providerFailure(
    `it ended its answer without a response${unread ? ', and it sent an event that is no JSON-RPC message' : ''}`,
    status,
  );

/** As credentialFailure, of a server whose answer is read already. */
function refusedCredentials(status: number, text: string | undefined): UpstreamFailure {
  const failure = providerFailure(`it answered with status ${status}`, status);
  return text === undefined ? failure : failure.ofReply(status, text);
}

/** Rejects with UpstreamFailure if a server refuses the provider's credentials, see credentialFailure. */
export async function refuseCredentialStatus(reply: UpstreamReply): Promise<void> {
  if (refusesCredentials(reply.status)) throw await credentialFailure('it', reply);
}

/** The price of a tool at an offer: its own price, or else the price of the service. */
export function priceOfTool(offer: Offer, tool: unknown): Price {
  return hasOwnPrice(offer, tool) ? offer.variants[tool]! : offer.price;
}

/** Whether a tool has its own price. Such a price is flat. */
export function hasOwnPrice({ variants }: Offer, tool: unknown): tool is string {
  return typeof tool === 'string' && Object.hasOwn(variants, tool);
}
