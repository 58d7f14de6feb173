import { hash } from 'node:crypto';
import { type Answer, lengthOf, resultText } from '#wire';
import type { Leaving, SettledFrame } from '#billing/amounts';
import {
  type Call,
  type CallRequest,
  costOf,
  idempotencyError,
  openCall,
  type OpenedCall,
  type Pipeline,
  type RepeatKey,
  requestKey,
  type Serve,
  type TakenKey,
  wasCharged,
  type Written,
} from '#gateway';
import type { KeptReplies } from '#tasks';
import { toMcpError, worthTelling } from '../wire/errors-mcp.ts';
import { aroundOutcome, keptOutcome, outcomePieces, REPLAYED, withId } from './kept-outcome.ts';
import { type PaidRequest, X402 } from './paid-request.ts';
import { paymentRequired } from './payment-required.ts';
import { requestDigest } from '../wire/request-digest.ts';
import type { McpTail, Turn } from '../turn/turn.ts';
import { withCost } from './with-cost.ts';

interface AnswerCallDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly serve: Serve;
  /** Keeps outcomes that are too large for the database. Default: they are not kept. */
  readonly largeReplies?: KeptReplies;
  /** Told of internal errors and of why a service is unavailable. */
  readonly onError: (error: unknown) => void;
}

/** A request of a client that is answered by a call. */
interface AnsweredCall extends Pick<Turn, 'message' | 'client' | 'continued' | 'service'>, PaidRequest {
  readonly free: boolean;
  /** null without one. */
  readonly idempotencyKey: string | null;
  /** The name that is called. With the method and its arguments it makes two requests the same. */
  readonly target: string;
  /** The call, under this id. Rejects with GatewayError. */
  request(callId: string): CallRequest | Promise<CallRequest>;
  /** A data frame of the call as whole events for the client; null for nothing. */
  events(bytes: Uint8Array): Uint8Array | null;
  /** The tail of the call as the client gets it; null for a reply without a response. */
  response(tail: unknown): McpTail | null;
  /**
   * An error before anything was run, as a result (JSON text), where whoever calls a tool can correct it. null for
   * a JSON-RPC error.
   */
  errorResult?(error: unknown): string | null;
}

export type AnswerCall = (asked: AnsweredCall, answer: Answer, gone: Leaving) => Promise<void>;

/** Runs one request as a call and writes its answer. Never throws: errors become the answer. */
export function createAnswerCall({ pipeline, serve, onError, largeReplies }: AnswerCallDeps): AnswerCall {
  /** Keeps a large outcome of a charged call. One that cannot be kept is not repeated. */
  const keepLarge: KeepLarge = async ({ caller, id }, status, pieces) => {
    if (largeReplies?.takes(lengthOf(pieces)))
      await largeReplies.keep(caller.account, id, { status, headers: {} }, pieces).catch(onError);
  };
  const repeatLarge = async ({ caller, message }: AnsweredCall, answer: Answer, by: TakenKey) => {
    const client = largeReplies ? answer.body() : null;
    if (client === null) throw idempotencyError(by.kind);
    await largeReplies!.repeat(caller.account, by, client, aroundOutcome(message.idText));
  };
  return async (asked, answer, gone) => {
    let opened = false;
    const { idText } = asked.message;
    try {
      await serve<OpenedCall>({
        caller: asked.caller,
        repeats: asked.free ? null : repeatsOf(asked, (by) => repeatLarge(asked, answer, by)),
        gone,
        async open(callId, left) {
          const asking = asked.request(callId);
          const request = asking instanceof Promise ? await asking : asking;
          const opening = openCall(pipeline, request, callId, left);
          const call = opening instanceof Promise ? await opening : opening;
          opened = true;
          return call;
        },
        write: (call, kept) => write(asked, call, answer, kept ? keepLarge : null),
        replay: (reply) => answer.end(withId(idText, reply), reply.status, REPLAYED),
        async refuse(refusal) {
          const result = await paymentRequired(asked, refusal);
          return { kept: () => null, charged: false, end: () => answer.end(resultText(idText, result), 200) };
        },
      });
    } catch (error) {
      const result = opened ? null : asked.errorResult?.(error);
      if (typeof result === 'string') return answer.end(resultText(idText, result), 200);
      const told = worthTelling(error);
      if (told !== null) onError(told);
      const more = asked.payment?.receipt ? { [X402.response]: asked.payment.receipt } : {};
      const { status, headers, text } = toMcpError(error, idText, more);
      // Clients with a session take another status than 200 for a broken connection.
      answer.end(text, asked.client === 'legacy' ? 200 : status, headers);
    }
  };
}

/**
 * A repeat is answered with the outcome of the first request, under its own id. Clients send one key with each round
 * of a call, and each round is another request.
 */
function repeatsOf(asked: AnsweredCall, taken: NonNullable<RepeatKey['taken']>): RepeatKey | null {
  const { caller, payment, idempotencyKey, continued, message, target } = asked;
  const key = requestKey(caller, payment, idempotencyKey);
  if (key === null) return null;
  const round = continued === null ? '' : ` ${hash('sha256', String(message.params?.['requestState'])).slice(0, 16)}`;
  return { key: key + round, bodyHash: requestDigest(target, message, true), taken };
}

/** Writes events as they come. The response is the end of the answer. */
async function write(
  asked: AnsweredCall,
  { call, frames }: OpenedCall,
  answer: Answer,
  keepLarge: KeepLarge | null,
): Promise<Written> {
  for await (const frame of frames) {
    if (frame.type === 'data') {
      const events = asked.events(frame.bytes);
      if (events !== null) await answer.events(events);
    }
    if (frame.type === 'settled') return written(asked.response(frame.tail), call, frame, answer, keepLarge);
  }
  return { kept: () => null, charged: false, end: () => answer.close() };
}

/** Keeps an outcome where it is too large for the database. */
type KeepLarge = (call: Call, status: number, pieces: readonly Uint8Array[]) => Promise<void>;

/** The response after its settlement. The response of a billed call says in `_meta` what it cost. */
async function written(
  tail: McpTail | null,
  call: Call,
  frame: SettledFrame,
  answer: Answer,
  keepLarge: KeepLarge | null,
): Promise<Written> {
  if (tail === null) return { kept: () => null, charged: false, end: () => answer.close() };
  const { status, eventId, large } = tail;
  const marked = (text: string) => (large === undefined ? text : { text, large });
  if (call.free !== null)
    return { kept: () => null, charged: false, end: () => answer.end(marked(tail.text), status, {}, eventId) };
  const cost = frame.pending ? null : costOf(frame);
  const headers = { 'x-generation-id': call.id, ...(cost === null ? {} : { 'x-cost-usd': cost.cost }) };
  const text = marked(withCost(tail, call, cost, frame.receipt));
  const charged = wasCharged(frame) || (frame.tail as McpTail | null)?.pending === true;
  const end = () => answer.end(text, status, headers, eventId);
  if (keepLarge === null) return { kept: () => null, charged, end };
  const pieces = outcomePieces(text);
  if (charged) await keepLarge(call, status, pieces);
  return { kept: () => keptOutcome(pieces, status), charged, end };
}
