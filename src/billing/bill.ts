import { CancelSource, type CancelSignal } from './cancel-signal.ts';
import type { Ledger, LockRequest, LockResult, ReleaseResult, Settlement, SettleResult } from './ledger/ledger.ts';
import type { MicroUsd } from './prices/money.ts';
import type { EndFrame, Frame, SettledFrame } from './frames.ts';
import { type CallResolution, NOTHING, type Quote, resolutionOf, settleOf } from './settle-call.ts';

/** The part of a call that billing reads, beside its LockRequest. The pipeline's Call has it. */
interface BilledCall {
  readonly id: string;
  /** One for each provider that the call can go to. */
  readonly candidates: readonly Quote[];
  /** Id of a held lock that this one replaces; null for none. */
  readonly continues: string | null;
  /** Id of the held lock that this one takes its money from; null if the money comes from the account's balance. */
  readonly parent: string | null;
  /** Locked in addition to the highest estimate, for calls that are made under this one. */
  readonly lendable: MicroUsd;
  /** The attempts that failed, for its record. Absent for none. */
  readonly failedAttempts?: readonly object[];
  /** `endsWithCall`: no task keeps the call's lock, and no call is made under it. Default false. */
  readonly adapter: { readonly endsWithCall?: boolean };
}

export type BilledHandler<C> = (call: C, signal: CancelSignal) => AsyncIterable<Frame, void, undefined>;

interface BillOptions<C extends BilledCall> {
  readonly ledger: Ledger;
  /** The lock of a call: of the highest estimate of its candidates, and what it lends. */
  readonly lockOf: (call: C) => LockRequest;
  /** Whether the end of the call may be late, see SettleRequest.mayBeLate. Default: never. */
  readonly mayBeLate?: (call: C) => boolean;
  readonly feeBps: number;
  /** Limits, in milliseconds and bytes, for reading the upstream's usage after the client has left. */
  readonly drainMs: number;
  /** The time of a call whose client has just left, if it is another. Default: `drainMs`. */
  readonly drainMsOf?: (call: C) => number;
  readonly drainBytes: number;
  /**
   * Called before the first lock of a call, to prepare what the lock needs: stored prices and money. null if there is
   * nothing to do. Gives the call to lock, as `refuse` does. Rejects with the error that the caller sees.
   */
  readonly prepay?: (call: C) => Promise<C> | null;
  /**
   * Called after a refused lock. Gives the call to lock instead: with only the candidates that the account can pay, or
   * with the same candidates if the account was credited with what was missing. Or gives the error that the caller
   * sees, also by rejecting.
   */
  readonly refuse: (call: C, result: Extract<LockResult, { ok: false }>) => C | Error | Promise<C | Error>;
  /** The signed receipt for a settled frame, or null. `settledAt`: the time of the end in the books, epoch ms. */
  readonly receipt: (call: C, end: EndFrame, settlement: Settlement, settledAt: number) => string | null;
  /** The error that the client gets, for the record of a call that failed. Default: the message of what was thrown. */
  readonly describeError?: (error: unknown) => { readonly code: string; readonly message: string };
  /** A call begins. Either `onRefused` or `onResolved` follows. */
  readonly onStarted: (call: C) => void;
  /** No lock was made, because it was refused or the ledger could not be reached. */
  readonly onRefused: (call: C, error: unknown) => void;
  /** The database has lost the lock of a call in a crash, so the call is locked again together with its end. */
  readonly onLockLost?: (call: C) => void;
  /** A lock was made, and this process has finished with it. A free call without a lock also ends here. */
  readonly onResolved: (call: C, resolution: LockResolution) => void;
}

/**
 * How a lock ended. `pending`: it has not ended, because the work waits for the consumer. `unresolved`: the database
 * could not be reached, so the lock will expire.
 */
export interface LockResolution {
  readonly state: 'settled' | 'released' | 'pending' | 'unresolved';
  readonly settlement: Settlement;
  readonly end: EndFrame | null;
  readonly error: unknown;
  readonly clientGone: boolean;
}

/**
 * The one billing middleware: lock, run, then settle or release, even if the client leaves.
 *
 * The money is locked before any work is forwarded, except for a call that can cost nothing. The settlement is durable
 * before the last frame of a reply is passed on, unless it may be late (decision 169).
 *
 * A consumer that stops reading (abort of `signal`, or return of the
 * iterator) does not end the run. The upstream is read on, within `drainMs` and `drainBytes`, so that the produced part
 * is charged by reported usage. Only `signal.cut` ends it at once.
 */
export function createBill<C extends BilledCall>(
  options: BillOptions<C>,
): (next: BilledHandler<C>) => BilledHandler<C> {
  return (next) => (call, signal) => run(options, next, call, signal);
}

async function* run<C extends BilledCall>(
  options: BillOptions<C>,
  next: BilledHandler<C>,
  request: C,
  signal: CancelSignal,
): AsyncGenerator<Frame, void, undefined> {
  options.onStarted(request);
  const { call, isFree } = await lock(options, request);
  const billed = new BilledRun(options, call, isFree, signal);
  const frames = next(call, billed.upstream)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await frames.next();
      if (done) break;
      if (value.type === 'end') {
        yield await billed.finish(value);
        return;
      }
      if (billed.gone) billed.drain(value);
      yield value;
    }
    throw new Error('the run ended without an end frame');
  } catch (error) {
    if (!billed.resolved) await billed.fail(error);
    throw error;
  } finally {
    // The consumer stopped iterating early: read on to get the usage, then resolve.
    if (!billed.resolved) {
      billed.leave();
      try {
        for (;;) {
          const { done, value } = await frames.next();
          // oxlint-disable-next-line no-unsafe-finally -- caught right below
          if (done) throw new Error('the run ended without an end frame');
          if (value.type === 'end') {
            await billed.finish(value);
            break;
          }
          billed.drain(value);
        }
      } catch (error) {
        if (!billed.resolved) await billed.fail(error);
      }
    }
    billed.over();
    await frames.return?.();
  }
}

/** A call whose money is locked, until its lock has ended. A class, because each call has one. */
class BilledRun<C extends BilledCall> {
  /** Aborts when the upstream is not read on. */
  readonly upstream = new CancelSource();
  /** The client has left. */
  gone = false;
  resolved = false;
  readonly #options: BillOptions<C>;
  readonly #call: C;
  readonly #isFree: boolean;
  readonly #signal: CancelSignal;
  readonly #onLeft: () => void;
  readonly #onCut: () => void;
  #drainTimer: NodeJS.Timeout | undefined;
  #drainedBytes = 0;

  constructor(options: BillOptions<C>, call: C, isFree: boolean, signal: CancelSignal) {
    this.#options = options;
    this.#call = call;
    this.#isFree = isFree;
    this.#signal = signal;
    const leave = () => this.leave();
    const cut = () => {
      this.upstream.byGateway = !this.gone;
      this.upstream.abort();
    };
    this.#onLeft = leave;
    this.#onCut = cut;
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave);
    if (signal.cut?.aborted) cut();
    else signal.cut?.addEventListener('abort', cut);
  }

  /** From now on the upstream is read only for its usage. */
  leave(): void {
    this.gone = true;
    this.upstream.clientLeft = true;
    const { drainMs, drainMsOf } = this.#options;
    this.#drainTimer ??= setTimeout(this.#onCut, drainMsOf?.(this.#call) ?? drainMs);
  }

  drain(frame: Frame): void {
    if (frame.type === 'data' && (this.#drainedBytes += frame.data.byteLength) > this.#options.drainBytes)
      this.upstream.abort();
  }

  async finish(end: EndFrame): Promise<SettledFrame> {
    const { ledger, receipt: receiptOf } = this.#options;
    const call = this.#call;
    if (end.outcome === 'pending') return this.#keep(end);
    let result: SettleResult | null = null;
    let resolution: CallResolution;
    try {
      const detail = detailText(end, this.gone);
      const quote = quoteOf(call, end);
      const feeBps = quote.ownKey?.feeBps ?? this.#options.feeBps;
      const request = settleOf(call.id, quote, end, detail, feeBps, this.#mayBeLate());
      if (!this.#isFree) result = await ledger.settle(request);
      if (result === null || isLost(result)) result = await this.#lockToEnd(() => ledger.settle(request));
      const resolving = resolutionOf(ledger, call.id, result);
      resolution = resolving instanceof Promise ? await resolving : resolving;
    } catch (error) {
      // Never release after an attempt to settle, because it may have been committed. If it was not, the lock expires.
      this.#resolve('unresolved', NOTHING, end, error);
      throw error;
    }
    const { settlement, settledAt } = resolution;
    // If another gateway settled the lock, that gateway has already reported the charge.
    this.#resolve('settled', result.ok ? settlement : NOTHING, end, null);
    const runCost = call.lendable > 0n ? await runCostOf(ledger, call.id, settlement) : undefined;
    const { usage, provider, providerName, cut, result: reply } = end;
    const receipt = settledAt === null ? null : receiptOf(call, end, settlement, settledAt);
    return { type: 'settled', settlement, runCost, usage, provider, providerName, receipt, cut, result: reply };
  }

  async fail(error: unknown): Promise<void> {
    const { ledger, describeError } = this.#options;
    try {
      const detail = failureDetail(describeError, error, this.gone, this.#call);
      const request = { id: this.#call.id, detail, mayBeLate: this.#mayBeLate() };
      const result = this.#isFree ? null : await ledger.release(request);
      if (result === null || isLost(result)) await this.#lockToEnd(() => ledger.release(request));
    } catch (unavailable) {
      this.#resolve('unresolved', NOTHING, null, unavailable);
      return;
    }
    this.#resolve('released', NOTHING, null, error);
  }

  #mayBeLate(): boolean {
    return this.#options.mayBeLate?.(this.#call) ?? false;
  }

  over(): void {
    clearTimeout(this.#drainTimer);
    this.#signal.removeEventListener('abort', this.#onLeft);
    this.#signal.cut?.removeEventListener('abort', this.#onCut);
  }

  async #keep(end: EndFrame): Promise<SettledFrame> {
    try {
      if (this.#isFree) await this.#options.ledger.lock(this.#options.lockOf(this.#call));
    } catch (error) {
      this.#resolve('unresolved', NOTHING, end, error);
      throw error;
    }
    this.#resolve('pending', NOTHING, end, null);
    return pendingFrame(end);
  }

  #resolve(state: LockResolution['state'], settlement: Settlement, end: EndFrame | null, error: unknown): void {
    this.resolved = true;
    this.#options.onResolved(this.#call, { state, settlement, end, error, clientGone: this.gone });
  }

  /**
   * Locks and ends in one group, so both write one row. For a call that costs nothing, and for one whose lock was lost
   * in a crash of the database, because the lock of a running call may be flushed later than it is used.
   */
  async #lockToEnd<R>(end: () => Promise<R>): Promise<R> {
    const { ledger, lockOf, onLockLost } = this.#options;
    if (!this.#isFree) onLockLost?.(this.#call);
    const request = { ...lockOf(this.#call), workDone: true, mayBeLate: this.#isFree && this.#mayBeLate() };
    const [, result] = await Promise.all([ledger.lock(request), end()]);
    return result;
  }
}

/** The database has no such lock, although it was made. */
const isLost = (result: SettleResult | ReleaseResult): boolean => !result.ok && result.reason === 'not_found';

const pendingFrame = ({ usage, provider, providerName, result }: EndFrame): SettledFrame => ({
  type: 'settled',
  settlement: NOTHING,
  pending: true,
  usage,
  provider,
  providerName,
  receipt: null,
  result,
});

/** undefined if the database cannot be read. The charge is settled anyway, and the call's record shows it. */
async function runCostOf(
  ledger: Pick<Ledger, 'find'>,
  id: string,
  { charged }: Settlement,
): Promise<MicroUsd | undefined> {
  const record = await ledger.find(id).catch(() => null);
  return record === null ? undefined : charged + record.lent;
}

/** True if the call cannot move money, however it ends. */
const costsNothing = ({ candidates, lendable, parent, continues, adapter }: BilledCall): boolean =>
  adapter.endsWithCall === true &&
  lendable === 0n &&
  parent === null &&
  continues === null &&
  candidates.every(({ estimate }) => estimate === 0n);

interface Locked<C> {
  readonly call: C;
  /** The call costs nothing, so it has no lock before its end. */
  readonly isFree: boolean;
}

/** Locks the call with all its candidates, or with those that the account can pay. */
async function lock<C extends BilledCall>(options: BillOptions<C>, request: C): Promise<Locked<C>> {
  try {
    const prepaid = options.prepay?.(request) ?? null;
    let call = prepaid === null ? request : await prepaid;
    // The old lock is released right before the new lock is submitted, so both are in one group. If the old lock has
    // ended already, there is nothing to release.
    if (costsNothing(call)) return { call, isFree: true };
    const { continues } = request;
    if (continues !== null)
      void options.ledger
        .release({ id: continues, account: options.lockOf(request).account, detail: '{"outcome":"continued"}' })
        .catch(() => {});
    for (;;) {
      const result = await options.ledger.lock(options.lockOf(call));
      if (result.ok) return { call, isFree: false };
      const refused = await options.refuse(call, result);
      if (refused instanceof Error) throw refused;
      call = refused;
    }
  } catch (error) {
    options.onRefused(request, error);
    throw error;
  }
}

/** How the run went, and whether its client had left, as JSON. */
function detailText({ detail }: EndFrame, clientGone: boolean): string {
  const text = JSON.stringify(detail);
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}"clientGone":${clientGone}}`;
}

function quoteOf({ id, candidates }: BilledCall, { price }: EndFrame): Quote {
  for (const quote of candidates) {
    if (quote.price.id === price) return quote;
    for (const tier of Object.values(quote.serviceTiers ?? {})) if (tier.id === price) return { ...quote, price: tier };
  }
  throw new Error(`call ${id} ended with price ${price}, which its lock does not hold`);
}

function failureDetail(
  describeError: BillOptions<never>['describeError'],
  error: unknown,
  clientGone: boolean,
  { failedAttempts }: BilledCall,
): string {
  // Nobody was told who had left.
  const { code, message } = (clientGone ? null : describeError?.(error)) ?? {
    message: error instanceof Error ? error.message : String(error),
  };
  return JSON.stringify({ outcome: 'failed', clientGone, error: message, errorCode: code, failedAttempts });
}
