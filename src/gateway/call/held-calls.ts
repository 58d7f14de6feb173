import { GatewayStopping } from '#errors';
import type { Ledger } from '#billing';
import type { Frame, MicroUsd, ReplyPiece } from '#billing/amounts';
import type { BilledHandler } from '#billing/compose';
import { NEVER_ABORTED, tooLarge, UpstreamFailure } from '#wire';
import { scrubNothing, scrubOf } from '#security';
import { type Catalog, createOffersById, type Offer } from '#catalog';
import { type BillingOptions, createBilling } from './billing.ts';
import type { Call, CallObserver, CallRequest, Candidate } from './call.ts';
import { createExecute } from './execute.ts';
import { mostOf } from './lock-payments.ts';
import type { Pipeline } from './pipeline.ts';
import { resumeCall } from './prepare.ts';
import { createRetryBudget } from './retry-budget.ts';
import { releaseProbes, type Router } from './routing/router.ts';
import type { Upstream, UpstreamExchange, UpstreamReply, UpstreamRequest } from './upstream.ts';

/** Calls that are locked now, and whose answer comes later. */
export interface HeldCalls {
  /** The most that a prepared call may cost. The call is not made. */
  mostOf(call: Call): MicroUsd;
  /**
   * Locks a call for its first candidate until `until` (epoch milliseconds), and resolves with the request that the
   * candidate would get. Rejects with GatewayError.
   */
  hold(call: Call, until: number): Promise<UpstreamRequest>;
  /**
   * Prepares a held call again, and settles it by its answer. null if its offer is gone, or its lock has ended without
   * a charge.
   */
  find(callId: string, answer: AnsweredRequest): Promise<Pick<Pipeline, 'prepare' | 'run'> | null>;
}

/** The answer of a provider to the request of a held call. `offer`: the id of the offer; `body`: JSON text. */
export interface AnsweredRequest {
  readonly offer: string;
  readonly status: number;
  readonly body: string;
  /** It has too many bytes, as this says, and `body` is only its end. */
  readonly tooLarge?: string;
  /** It did not come in time, as this says, and `body` is empty. */
  readonly late?: string;
}

interface HeldCallsOptions {
  readonly billing: BillingOptions;
  readonly catalog: Catalog;
  readonly router: Router;
  readonly callTimeoutMs: number;
  readonly now: () => number;
  readonly elapsed: () => number;
}

/** Ends the attempt that only says what it would send. */
const HELD = new Error('the request is held');
const NOTHING_SENT: UpstreamRequest = { method: 'POST', path: '', headers: {}, body: null };
const NOT_HELD = JSON.stringify({ outcome: 'failed', error: 'the lock could not be kept' });
const OK = 200;
const REDIRECT = 300;

/**
 * Calls whose provider answers hours later, as it does in a batch. Their money is locked at once, in the lock that they
 * are settled from. The answer takes the way of every other: the reader of its protocol, its price and its settlement.
 */
export function createHeldCalls({ billing, catalog, router, ...options }: HeldCallsOptions): HeldCalls {
  const { ledger, prices, health, observer } = billing;
  const { elapsed } = options;
  const offerOf = createOffersById(catalog);
  // A call counts when it is answered.
  const unseen: CallObserver = { ...observer, started() {}, failed() {}, resolved() {} };
  const holding = createBilling({ ...billing, observer: unseen });
  const lockedBefore: Ledger = { ...ledger, lock: async () => ({ ok: true, available: 0n }) };
  const settling = createBilling({ ...billing, ledger: lockedBefore });
  const attempts = {
    // The time of an answer in a batch says nothing about the calls that wait for theirs.
    health: { ...health, succeeded() {}, failed() {}, unreachable() {}, blamed() {}, notProbed() {} },
    router: { ...router, served() {}, servedPrefix() {} },
    retryBudget: createRetryBudget({ now: elapsed }),
    observer: { ...observer, attemptStarted() {}, idle() {}, workBegins() {}, firstByte() {} },
    now: elapsed,
  };

  return {
    mostOf(call) {
      releaseProbes(health, call);
      return mostOf(call);
    },

    async hold(call, until) {
      const [first] = call.candidates;
      let upstreamRequest = NOTHING_SENT;
      const take = (request: UpstreamRequest): never => {
        upstreamRequest = request;
        throw HELD;
      };
      const { adapter } = call;
      const next: BilledHandler<Call> = () => attemptToHold(first!, adapter, take);
      // Not as a call that ends with its request: its lock is kept.
      const heldCall: Call = {
        ...call,
        candidates: [first!],
        adapter: { startAttempt: adapter.startAttempt.bind(adapter) },
      };
      try {
        for await (const _ of holding(next)(heldCall, NEVER_ABORTED));
      } finally {
        releaseProbes(health, call);
      }
      try {
        if (!(await ledger.keep(call.id, until)).ok) throw new GatewayStopping();
      } catch (error) {
        // The line is called again under another id.
        await ledger.release({ id: call.id, detail: NOT_HELD });
        throw error;
      }
      return upstreamRequest;
    },

    async find(callId, answer) {
      const offer = offerOf(answer.offer);
      const lock = await ledger.find(callId);
      if (offer === undefined || lock === null) return null;
      const isAnswer = answer.status >= OK && answer.status < REDIRECT;
      if (isAnswer && lock.state !== 'held' && lock.state !== 'settled') return null;
      // The price is the one that was locked, whatever the offer costs now.
      const price = await prices.find(lock.prices[0]!);
      if (price === null) return null;
      // Of no other tier, whatever the answer says: it came in a batch.
      const candidate: Candidate = { offer, price, estimate: lock.amount - lock.lendable };
      // The call has the adapter of its request.
      return {
        prepare: <R, D extends ReplyPiece>(request: CallRequest<R, D>, id = callId) =>
          resumeCall(options, request, id, candidate) as Call<R, D>,
        run<R, D extends ReplyPiece>(call: Call<R, D>) {
          const execute = createExecute({ ...attempts, upstream: upstreamOf(answer, offer) });
          // The call has the adapter of its request.
          return settling((one, signal) => withoutTimes(execute(one, signal)))(call, NEVER_ABORTED) as AsyncIterable<
            Frame<R, D>,
            void,
            undefined
          >;
        },
      };
    },
  };
}

const pendingEnd = ({ price, offer }: Candidate): Frame => ({
  type: 'end',
  price: price.id,
  provider: offer.provider.id,
  providerName: offer.provider.name,
  usage: null,
  outcome: 'pending',
  estimated: false,
  detail: {},
  result: null,
});

/** The frames of a call whose request is only taken. */
async function* attemptToHold(
  candidate: Candidate,
  adapter: Call['adapter'],
  take: Parameters<Call['adapter']['startAttempt']>[1],
): AsyncGenerator<Frame, void, undefined> {
  const stream = adapter.startAttempt(candidate.offer, take, new AbortController().signal, take);
  await Promise.resolve(stream.next()).catch((error: unknown) => {
    if (error !== HELD) throw error;
  });
  yield pendingEnd(candidate);
}

/** Leaves out the times of the attempt, which did not wait for the provider. */
async function* withoutTimes(frames: AsyncIterable<Frame, void, undefined>): AsyncGenerator<Frame, void, undefined> {
  for await (const frame of frames)
    yield frame.type === 'end'
      ? { ...frame, detail: { ...frame.detail, firstByteMs: undefined, durationMs: undefined, batch: true } }
      : frame;
}

/** An upstream that gives one answer, which came before. */
function upstreamOf(answer: AnsweredRequest, { endpoint }: Offer): Upstream {
  const scrub = endpoint.kind === 'direct' ? scrubOf(endpoint.headers) : scrubNothing;
  return {
    send: (): UpstreamExchange => ({
      head: Promise.resolve(new WholeReply(answer, scrub)),
      sent: true,
      abort() {},
      over() {},
    }),
    close: async () => {},
  };
}

/** A reply that is there as a whole. */
class WholeReply implements UpstreamReply {
  readonly status: number;
  readonly headers = { 'content-type': 'application/json' };
  readonly scrub: UpstreamReply['scrub'];
  ended = false;
  readonly #body: string;
  readonly #tooLarge: string | undefined;
  readonly #late: string | undefined;
  #isGiven = false;

  constructor({ status, body, tooLarge: why, late }: AnsweredRequest, scrub: UpstreamReply['scrub']) {
    this.status = status;
    this.#body = body;
    this.#tooLarge = why;
    this.#late = late;
    this.scrub = scrub;
  }

  read(): readonly Uint8Array[] | null {
    if (this.ended) return null;
    if (this.#late !== undefined)
      throw new UpstreamFailure(this.#late, { retryable: false, attributedTo: 'provider', timedOut: true });
    // It is given up as a reply that arrives is, with what came of it.
    if (this.#isGiven) throw tooLarge(this.#tooLarge!);
    this.#isGiven = true;
    this.ended = this.#tooLarge === undefined;
    return [Buffer.from(this.#body)];
  }

  discard(): void {
    this.ended = true;
  }
}
