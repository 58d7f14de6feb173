import { hash } from 'node:crypto';
import {
  type Answer,
  type Call,
  type CallRequest,
  costOf,
  type Idempotency,
  idempotencyError,
  ownIdempotencyKey,
  membersOf,
  type PaymentTerms,
  type Pipeline,
  resultText,
  type SettledFrame,
} from '#gateway';
import { asksForMoney, toMcpError, worthTelling } from './errors-mcp.ts';
import { keptOutcome, withId } from './kept-outcome.ts';
import { paymentRequired } from './payment-required.ts';
import type { McpTail, Turn } from './turn.ts';
import { withCost } from './with-cost.ts';

export interface AnswerCallDeps {
  readonly pipeline: Pick<Pipeline, 'prepare' | 'run'>;
  readonly idempotency: Idempotency;
  readonly terms: PaymentTerms;
  /** Told of runs that fail in a way that no wire has a word for. */
  readonly onError: (error: unknown) => void;
}

/** A request of a client that is answered by a call. */
export interface AnsweredCall extends Pick<Turn, 'message' | 'client' | 'caller' | 'callId' | 'continued' | 'service'> {
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
  /** An error before anything was run, as a result (JSON text): what whoever calls a tool can mend. null for one that is a JSON-RPC error. */
  errorResult?(error: unknown): string | null;
}

export type AnswerCall = (asked: AnsweredCall, answer: Answer, gone: AbortSignal) => Promise<void>;

/** Takes one request through the pipeline and writes its answer. Never throws: what goes wrong is the answer. */
export function createAnswerCall(deps: AnswerCallDeps): AnswerCall {
  return async (asked, answer, gone) => {
    try {
      if (asked.idempotencyKey === null || asked.free) await run(deps, asked, answer, gone);
      else await runOnce(deps, asked, asked.idempotencyKey, answer);
    } catch (error) {
      const told = worthTelling(error);
      if (told !== null) deps.onError(told);
      const { status, headers, text } = toMcpError(error, asked.message.idText);
      // Clients with a session take another status than 200 for a broken connection.
      answer.end(text, asked.client === 'legacy' ? 200 : status, headers);
    }
  };
}

async function run(deps: AnswerCallDeps, asked: AnsweredCall, answer: Answer, gone: AbortSignal): Promise<SettledFrame | null> {
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
    const result = call === null ? asked.errorResult?.(error) : refusalOf(deps, asked, call, error);
    if (typeof result !== 'string') throw error;
    answer.end(resultText(asked.message.idText, result), 200);
    return null;
  }
}

/** A call that was not made for want of money, as the result that says how it can be paid for. */
function refusalOf({ terms }: AnswerCallDeps, asked: AnsweredCall, { candidates }: Call, error: unknown): string | null {
  if (asked.free || !asksForMoney(error)) return null;
  const amount = candidates.reduce((least, { estimate }) => (estimate < least ? estimate : least), candidates[0]!.estimate);
  return paymentRequired(terms, asked, error, amount);
}

/**
 * A request with an idempotency key runs once, to its end even when its client leaves; its outcome is repeated, under the id of whoever asks again:
 * a result, an error of the server, or what it asks. What never reached an end is not kept.
 */
async function runOnce(deps: AnswerCallDeps, asked: AnsweredCall, key: string, answer: Answer): Promise<void> {
  const { idempotency } = deps;
  const { idText } = asked.message;
  const use = {
    account: asked.caller.account,
    key: ownIdempotencyKey(asked.caller, roundOf(key, asked)),
    callId: asked.callId,
    bodyHash: digestOf(asked),
  };
  const beginning = await idempotency.begin(use);
  if (beginning.kind === 'replay') return answer.end(withId(idText, beginning), beginning.status, { 'idempotent-replayed': 'true' });
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
  if (settled && kept.last) await idempotency.finish(use, keptOutcome(kept.last[0], kept.last[1], settled.settlement.charged > 0n));
  else await idempotency.abandon(use);
  if (kept.last) answer.end(...kept.last);
  else answer.close();
}

/** A client sends its key again with each round of one call; each is another request. */
function roundOf(key: string, { continued, message: { params } }: AnsweredCall): string {
  return continued === null ? key : `${key} ${hash('sha256', String(params?.['requestState'])).slice(0, 16)}`;
}

/** What makes two requests the same: the tool and its arguments as they are written, and what the client answers to a round. Ids and tokens differ. */
function digestOf({ target, message }: AnsweredCall): string {
  const whole = message.members.get('params');
  const params = whole && membersOf(message.text, whole.start);
  const parts = ['name', 'arguments', 'inputResponses'].map((key) => {
    const member = params?.get(key);
    return member ? message.text.slice(member.start, member.end) : null;
  });
  return hash('sha256', JSON.stringify([target, message.method, ...parts]));
}

/** The response after its settlement; that of a billed call says in `_meta` what it cost. */
function write(tail: McpTail | null, call: Call, frame: SettledFrame, answer: Answer): void {
  if (tail === null) return answer.close();
  if (call.free !== null) return answer.end(tail.text, tail.status, {}, tail.eventId);
  const cost = costOf(frame);
  answer.end(withCost(tail, call, cost, frame.receipt), tail.status, { 'x-generation-id': call.id, 'x-cost-usd': cost.cost }, tail.eventId);
}
