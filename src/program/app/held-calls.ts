import { GatewayStopping } from '#errors';
import type { Frame, Ledger } from '#billing';
import type { BilledHandler } from '#billing/compose';
import { NEVER_ABORTED, tooLarge, UpstreamFailure } from '#wire';
import { scrubNothing, scrubOf } from '#security';
import { createOffersById, type Offer } from '#catalog';
import { createExecute, createResume, createRetryBudget, releaseProbes, type Candidate } from '#call/compose';
import type { Call, CallObserver, Upstream, UpstreamExchange, UpstreamReply, UpstreamRequest } from '#call';
import type { AnsweredRequest } from '#batch-jobs';
import type { FoundCall, HeldCalls } from '#openai';
import { openBilling } from './billing.ts';
import type { Middle } from './middle.ts';

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
export function createHeldCalls(middle: Middle): HeldCalls {
  const { config, catalog, ledger, prices, health, router, observer, quotes, now, elapsed } = middle;
  const offerOf = createOffersById(catalog);
  const resume = createResume({ callTimeoutMs: config.upstream.callTimeoutMs, now, elapsed });
  // A call counts when it is answered.
  const unseen: CallObserver = { ...observer, started() {}, failed() {}, resolved() {} };
  const holding = openBilling({ ...middle, observer: unseen }, quotes);
  const lockedBefore: Ledger = { ...ledger, lock: async () => ({ ok: true, available: 0n }) };
  const settling = openBilling({ ...middle, ledger: lockedBefore }, quotes);
  const options = {
    // The time of an answer in a batch says nothing about the calls that wait for theirs.
    health: { ...health, succeeded() {}, failed() {}, unreachable() {}, blamed() {}, notProbed() {} },
    router: { ...router, served() {}, servedPrefix() {} },
    retryBudget: createRetryBudget({ now: elapsed }),
    observer: { ...observer, attemptStarted() {}, idle() {}, workBegins() {}, firstByte() {} },
    now: elapsed,
  };

  return {
    async hold(call, until) {
      const [first] = call.candidates;
      let taken = NOTHING_SENT;
      const take = (request: UpstreamRequest): never => {
        taken = request;
        throw HELD;
      };
      const { adapter } = call;
      const next: BilledHandler<Call> = () => attemptToHold(first!, adapter, take);
      // Not as a call that ends with its request: its lock is kept.
      const kept: Call = {
        ...call,
        candidates: [first!],
        adapter: { startAttempt: adapter.startAttempt.bind(adapter) },
      };
      try {
        for await (const _ of holding(next)(kept, NEVER_ABORTED));
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
      return taken;
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
      const found: FoundCall = {
        prepare: (request, id) => resume(request, id, candidate),
        run<R, D extends { readonly byteLength: number }>(call: Call<R, D>) {
          const execute = createExecute({ ...options, upstream: upstreamOf(answer, offer) });
          // The call has the adapter of its request.
          return settling((one, signal) => withoutTimes(execute(one, signal)))(call, NEVER_ABORTED) as AsyncIterable<
            Frame<R, D>,
            void,
            undefined
          >;
        },
      };
      return found;
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
