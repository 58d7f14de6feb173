import { hash } from 'node:crypto';
import { type Answer, ofGeneration, resultText } from '#wire';
import type { SettledFrame } from '#billing/amounts';
import {
  type Call,
  type CallRequest,
  costOf,
  type Idempotency,
  idempotencyError,
  ownIdempotencyKey,
  paymentKey,
  type Payments,
  type Pipeline,
  toGatewayError,
  wasCharged,
} from '#gateway';
import { asksForMoney, toMcpError, worthTelling } from '../wire/errors-mcp.ts';
import { keptOutcome, withId } from './kept-outcome.ts';
import { type PaidRequest, X402 } from './paid-request.ts';
import { paymentRequired } from './payment-required.ts';
import { requestDigest } from '../wire/request-digest.ts';
import type { McpTail, Turn } from '../turn/turn.ts';
import { withCost } from './with-cost.ts';

export interface AnswerCallDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly idempotency: Idempotency;
  readonly payments: Payments;
  /** Told of runs that fail in a way that no wire has a word for. */
  readonly onError: (error: unknown) => void;
}

/** A request of a client that is answered by a call. */
export interface AnsweredCall
  extends Pick<Turn, 'message' | 'client' | 'callId' | 'continued' | 'service'>, PaidRequest {
  readonly free: boolean;
  /** null without one. */
  readonly idempotencyKey: string | null;
  /** What of the gateway is asked: with the method and its arguments it makes two requests the same. */
  readonly target: string;
  /** The call. Rejects with GatewayError. */
  request(): CallRequest | Promise<CallRequest>;
  /** What a data frame of the call is to the client: whole events; null for nothing. */
  events(bytes: Uint8Array): Uint8Array | null;
  /** What the tail of the call is to the client; null for a reply without a response. */
  response(tail: unknown): McpTail | null;
  /**
   * An error before anything was run, as a result (JSON text): what whoever calls a tool can mend. null for one
   * that is a JSON-RPC error.
   */
  errorResult?(error: unknown): string | null;
}

export type AnswerCall = (asked: AnsweredCall, answer: Answer, gone: AbortSignal) => Promise<void>;

/** Takes one request through the pipeline and writes its answer. Never throws: what goes wrong is the answer. */
export function createAnswerCall(deps: AnswerCallDeps): AnswerCall {
  return async (asked, answer, gone) => {
    try {
      const key = asked.free ? null : keyOf(asked);
      if (key === null) await run(deps, asked, answer, gone);
      else await runOnce(deps, asked, key, answer);
    } catch (error) {
      const told = worthTelling(error);
      if (told !== null) deps.onError(told);
      const { status, headers, text } = toMcpError(
        error,
        asked.message.idText,
        asked.payment?.receipt ? { [X402.response]: asked.payment.receipt } : {},
      );
      // Clients with a session take another status than 200 for a broken connection.
      answer.end(text, asked.client === 'legacy' ? 200 : status, headers);
    }
  };
}

async function run(
  deps: AnswerCallDeps,
  asked: AnsweredCall,
  answer: Answer,
  gone: AbortSignal,
): Promise<SettledFrame | null> {
  let call: Call | null = null;
  try {
    call = await deps.pipeline.prepare(await asked.request(), asked.callId);
    for await (const frame of deps.pipeline.run(call, gone)) {
      if (frame.type === 'data') {
        const events = asked.events(frame.bytes);
        if (events !== null) await answer.events(events);
      }
      if (frame.type !== 'settled') continue;
      write(asked.response(frame.tail), call, frame, answer);
      return frame;
    }
    return null;
  } catch (error) {
    const result = call === null ? asked.errorResult?.(error) : await refusalOf(deps, asked, call, error);
    if (typeof result !== 'string')
      throw call === null || asked.free ? error : ofGeneration(toGatewayError(error), call.id);
    answer.end(resultText(asked.message.idText, result), 200);
    return null;
  }
}

/** A call that was not made for want of money, as the result that says how it can be paid for. */
async function refusalOf(
  { payments }: AnswerCallDeps,
  asked: AnsweredCall,
  { candidates }: Call,
  error: unknown,
): Promise<string | null> {
  if (asked.free || !asksForMoney(error)) return null;
  const amount = candidates.reduce(
    (least, { estimate }) => (estimate < least ? estimate : least),
    candidates[0]!.estimate,
  );
  return paymentRequired(payments, asked, error, amount);
}

/**
 * The key that a request is run once by; null for none. Who comes without an account has none to keep it in, unless
 * the request is paid for: then that is its key.
 */
function keyOf({ caller, idempotencyKey, payment }: AnsweredCall): string | null {
  if (caller.anonymous) return null;
  if (idempotencyKey !== null) return ownIdempotencyKey(caller, idempotencyKey);
  return caller.paying && payment ? paymentKey(payment) : null;
}

/**
 * A request with an idempotency key runs once, to its end even when its client leaves; its outcome is repeated,
 * under the id of whoever asks again: a result, an error of the server, or what it asks. What never reached an end
 * is not kept.
 */
async function runOnce(deps: AnswerCallDeps, asked: AnsweredCall, key: string, answer: Answer): Promise<void> {
  const { idempotency } = deps;
  const { idText } = asked.message;
  const use = {
    account: asked.caller.account,
    key: roundOf(key, asked),
    callId: asked.callId,
    bodyHash: requestDigest(asked.target, asked.message, true),
    allowedServices: asked.caller.key?.allowedServices ?? null,
  };
  const beginning = await idempotency.begin(use);
  if (beginning.kind === 'replay')
    return answer.end(withId(idText, beginning), beginning.status, { 'idempotent-replayed': 'true' });
  if (beginning.kind !== 'new') throw idempotencyError(beginning.kind);
  const kept: { last: Parameters<Answer['end']> | null } = { last: null };
  const recording: Answer = {
    events: (bytes) => answer.events(bytes),
    end(...last) {
      kept.last = last;
    },
    close: () => {},
  };
  let settled: SettledFrame | null;
  try {
    settled = await run(deps, asked, recording, new AbortController().signal);
  } catch (error) {
    await idempotency.abandon(use);
    throw error;
  }
  if (settled && kept.last)
    await idempotency.finish(use, keptOutcome(kept.last[0], kept.last[1]), mayBeCharged(settled));
  else await idempotency.abandon(use);
  if (kept.last) answer.end(...kept.last);
  else answer.close();
}

/** Whether the outcome was charged, or is when its task ends. */
const mayBeCharged = (settled: SettledFrame): boolean =>
  wasCharged(settled) || (settled.tail as McpTail | null)?.pending === true;

/** A client sends its key again with each round of one call; each is another request. */
function roundOf(key: string, { continued, message: { params } }: AnsweredCall): string {
  return continued === null ? key : `${key} ${hash('sha256', String(params?.['requestState'])).slice(0, 16)}`;
}

/** The response after its settlement; that of a billed call says in `_meta` what it cost. */
function write(tail: McpTail | null, call: Call, frame: SettledFrame, answer: Answer): void {
  if (tail === null) return answer.close();
  if (call.free !== null) return answer.end(tail.text, tail.status, {}, tail.eventId);
  const cost = frame.pending ? null : costOf(frame);
  const headers = { 'x-generation-id': call.id, ...(cost === null ? {} : { 'x-cost-usd': cost.cost }) };
  answer.end(withCost(tail, call, cost, frame.receipt), tail.status, headers, tail.eventId);
}
