import { CancelSource, type CancelSignal } from './cancel-signal.ts';
import type {
  Ledger,
  LockRequest,
  LockResult,
  ReleaseResult,
  Settlement,
  SettleRequest,
  SettleResult,
  LockRecord,
} from './ledger.ts';
import type { MicroUsd } from './money.ts';
import { cost, type Price, type ServiceTiers, type Usage } from './price.ts';
import { usageToText } from './price-text.ts';
import type { PriceBook } from './price-book.ts';

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
  /** `endsWithCall`: no task keeps the call's lock, and no call is made under it. Default false. */
  readonly adapter: { readonly endsWithCall?: boolean };
}

/** A price, and the most that a call can cost by it. */
interface Quote {
  readonly price: Price;
  readonly estimate: MicroUsd;
  /** Prices of which one is charged instead if the call comes to less by it. Absent: only `price`. */
  readonly serviceTiers?: ServiceTiers | undefined;
  /** Present if the consumer's own key is used: the fee of the call, in basis points, in place of the usual one. */
  readonly ownKey?: { readonly feeBps: number };
}

/** A reply has begun. Sent again if the reply fails before its first data and another provider takes over. */
interface HeadFrame {
  readonly type: 'head';
  readonly status: number;
  /** The provider that serves. */
  readonly provider: { readonly id: string; readonly name: string };
}

/**
 * A piece of a reply: bytes of the wire that its client speaks, or events where two wires meet. While a reply is
 * drained for its usage, billing bounds it by the size of its pieces in bytes.
 */
export interface Piece {
  readonly byteLength: number;
}

interface DataFrame<D extends Piece> {
  readonly type: 'data';
  readonly data: D;
}

/** The end of a run, with its usage. It is the last frame of an executor, and billing turns it into a SettledFrame. */
export interface EndFrame<R = unknown> {
  readonly type: 'end';
  /** Id of the price of the provider that served. It is that of one of the call's candidates. */
  readonly price: string;
  readonly provider: string;
  readonly providerName: string;
  readonly usage: Usage | null;
  /**
   * `cut`: the run was ended early although nothing had failed, and what was produced is charged. `pending`: the lock
   * stays held until a later call continues the work, or until it expires.
   */
  readonly outcome: 'complete' | 'cut' | 'free' | 'over_cap' | 'pending';
  /** The most that is charged, because less came than the price is for; default the price of the usage. */
  readonly costMax?: MicroUsd | null;
  readonly estimated: boolean;
  /** How the run went; stored with the generation as JSON. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** The protocol's own result, from which its route writes the end of the reply. null if the run was cut before it. */
  readonly result: R | null;
}

/** The last frame that a protocol sees. The charge in it is durable. */
export interface SettledFrame<R = unknown> {
  readonly type: 'settled';
  readonly settlement: Settlement;
  /** The work goes on and the lock stays held. Nothing is charged yet, and the final charge is not known. */
  readonly pending?: true;
  readonly usage: Usage | null;
  readonly provider: string;
  readonly providerName: string;
  /**
   * The charges of this call and of all calls under it; absent if no call could be made under it. A call that still
   * runs counts with all that its lock holds.
   */
  readonly runCost?: MicroUsd | undefined;
  /** Compact JWS; null if no receipt was requested. */
  readonly receipt: string | null;
  /** See EndFrame.result. */
  readonly result: R | null;
}

/** One step of a running call. `R`: the protocol's result; `D`: what the reply gives out. */
export type Frame<R = unknown, D extends Piece = Piece> = HeadFrame | DataFrame<D> | EndFrame<R> | SettledFrame<R>;
export type BilledHandler<C> = (call: C, signal: CancelSignal) => AsyncIterable<Frame, void, undefined>;

interface BillOptions<C extends BilledCall> {
  readonly ledger: Ledger;
  /** The lock of a call: of the highest estimate of its candidates, and what it lends. */
  readonly lockOf: (call: C) => LockRequest;
  readonly feeBps: number;
  /** Limits, in time and bytes, for reading the upstream's usage after the client has left. */
  readonly drainMs: number;
  readonly drainBytes: number;
  /**
   * Called before the first lock of a call, to prepare what the lock needs: stored prices and money. null if there is
   * nothing to do. Rejects with the error that the caller sees.
   */
  readonly prepay?: (call: C) => Promise<void> | null;
  /**
   * Called after a refused lock. Gives the call to lock instead: with only the candidates that the account can pay, or
   * with the same candidates if the account was credited with what was missing. Or gives the error that the caller
   * sees, also by rejecting.
   */
  readonly refuse: (call: C, result: Extract<LockResult, { ok: false }>) => C | Error | Promise<C | Error>;
  /** The signed receipt for a settled frame, or null. */
  readonly receipt: (call: C, end: EndFrame, settlement: Settlement) => string | null;
  /** A call begins. Either `onRefused` or `onResolved` follows. */
  readonly onStarted: (call: C) => void;
  /** No lock was made, because it was refused or the ledger could not be reached. */
  readonly onRefused: (call: C, error: unknown) => void;
  /** The database has lost the lock of a call in a crash, so the call is locked again together with its end. */
  readonly onLockLost?: (call: C) => void;
  /** A lock was made, and this process has finished with it. A free call without a lock also ends here. */
  readonly onResolved: (call: C, resolution: Resolution) => void;
}

/**
 * How a lock ended. `pending`: it has not ended, because the work waits for the consumer. `unresolved`: the database
 * could not be reached, so the lock will expire.
 */
export interface Resolution {
  readonly state: 'settled' | 'released' | 'pending' | 'unresolved';
  readonly settlement: Settlement;
  readonly end: EndFrame | null;
  readonly error: unknown;
  readonly clientGone: boolean;
}

const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

/**
 * The one billing middleware: lock, run, then settle or release, even if the client leaves.
 *
 * The money is locked before any work is forwarded, except for a call that can cost nothing. The settlement is durable
 * before the last frame of a reply is passed on. A consumer that stops reading (abort of `signal`, or return of the
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
  asked: C,
  signal: CancelSignal,
): AsyncGenerator<Frame, void, undefined> {
  options.onStarted(asked);
  const locked = await lock(options, asked);
  const { call, isFree } = locked;

  const upstream = new CancelSource();
  let drainTimer: NodeJS.Timeout | undefined;
  let drainedBytes = 0;
  let gone = false;
  let resolved = false;

  const cut = () => upstream.abort();
  const leave = () => {
    gone = true;
    drainTimer ??= setTimeout(cut, options.drainMs);
  };
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  if (signal.cut?.aborted) cut();
  else signal.cut?.addEventListener('abort', cut);

  const resolve = (state: Resolution['state'], settlement: Settlement, end: EndFrame | null, error: unknown) => {
    resolved = true;
    options.onResolved(call, { state, settlement, end, error, clientGone: gone });
  };
  const finish = async (end: EndFrame): Promise<SettledFrame> => {
    if (end.outcome === 'pending') {
      try {
        if (isFree) await options.ledger.lock(options.lockOf(call));
      } catch (error) {
        resolve('unresolved', NOTHING, end, error);
        throw error;
      }
      resolve('pending', NOTHING, end, null);
      return pendingFrame(end);
    }
    let result: SettleResult;
    let settlement: Settlement;
    try {
      const quote = quoteOf(call, end);
      const feeBps = quote.ownKey?.feeBps ?? options.feeBps;
      const request = () => settleOf(call.id, quote, end, detailText(end, gone), feeBps);
      result = await ended(options, locked, () => options.ledger.settle(request()));
      settlement = result.ok ? settlementOf(result) : await resolutionOf(options.ledger, call.id, result);
    } catch (error) {
      // Never release after an attempt to settle, because it may have been committed. If it was not, the lock expires.
      resolve('unresolved', NOTHING, end, error);
      throw error;
    }
    // If another gateway settled the lock, that gateway has already reported the charge.
    resolve('settled', result.ok ? settlement : NOTHING, end, null);
    const runCost = call.lendable > 0n ? await runCostOf(options.ledger, call.id, settlement) : undefined;
    const { usage, provider, providerName, result: reply } = end;
    const receipt = options.receipt(call, end, settlement);
    return { type: 'settled', settlement, runCost, usage, provider, providerName, receipt, result: reply };
  };
  const fail = async (error: unknown): Promise<void> => {
    try {
      await ended(options, locked, () => options.ledger.release({ id: call.id, detail: failureDetail(error, gone) }));
    } catch (unavailable) {
      resolve('unresolved', NOTHING, null, unavailable);
      return;
    }
    resolve('released', NOTHING, null, error);
  };
  const drain = (frame: Frame) => {
    if (frame.type === 'data' && (drainedBytes += frame.data.byteLength) > options.drainBytes) upstream.abort();
  };

  const frames = next(call, upstream)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await frames.next();
      if (done) break;
      if (value.type === 'end') {
        yield await finish(value);
        return;
      }
      if (gone) drain(value);
      yield value;
    }
    throw new Error('the run ended without an end frame');
  } catch (error) {
    if (!resolved) await fail(error);
    throw error;
  } finally {
    // The consumer stopped iterating early: read on to get the usage, then resolve.
    if (!resolved) {
      leave();
      try {
        for (;;) {
          const { done, value } = await frames.next();
          // oxlint-disable-next-line no-unsafe-finally -- caught right below
          if (done) throw new Error('the run ended without an end frame');
          if (value.type === 'end') {
            await finish(value);
            break;
          }
          drain(value);
        }
      } catch (error) {
        if (!resolved) await fail(error);
      }
    }
    clearTimeout(drainTimer);
    signal.removeEventListener('abort', leave);
    signal.cut?.removeEventListener('abort', cut);
    await frames.return?.();
  }
}

/**
 * Ends a lock. A call that costs nothing is locked and ended in one group, so both write one row. So is a call whose
 * lock was lost in a crash of the database, because the lock of a running call may be flushed later than it is used.
 */
async function ended<C extends BilledCall, R extends SettleResult | ReleaseResult>(
  { ledger, lockOf, onLockLost }: BillOptions<C>,
  { call, isFree }: Locked<C>,
  end: () => Promise<R>,
): Promise<R> {
  if (!isFree) {
    const result = await end();
    if (result.ok || result.reason !== 'not_found') return result;
    onLockLost?.(call);
  }
  const [, result] = await Promise.all([ledger.lock({ ...lockOf(call), workDone: true }), end()]);
  return result;
}

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
async function lock<C extends BilledCall>(options: BillOptions<C>, asked: C): Promise<Locked<C>> {
  try {
    let call = asked;
    const paid = options.prepay?.(asked) ?? null;
    if (paid !== null) await paid;
    // The old lock is released right before the new lock is submitted, so both are in one group. If the old lock has
    // ended already, there is nothing to release.
    if (costsNothing(asked)) return { call, isFree: true };
    const { continues } = asked;
    if (continues !== null)
      void options.ledger.release({ id: continues, detail: '{"outcome":"continued"}' }).catch(() => {});
    for (;;) {
      const result = await options.ledger.lock(options.lockOf(call));
      if (result.ok) return { call, isFree: false };
      const refused = await options.refuse(call, result);
      if (refused instanceof Error) throw refused;
      call = refused;
    }
  } catch (error) {
    options.onRefused(asked, error);
    throw error;
  }
}

/** The settlement of a run that ended as `end`. It is at most the estimate of `quote`. */
function settleOf(
  id: string,
  quote: Quote,
  end: Charged & Pick<EndFrame, 'provider'>,
  detail: string,
  feeBps: number,
): SettleRequest {
  const charge = chargeOf(quote, end);
  if (charge > 0n && quote.estimate === 0n) throw new Error(`call ${id} has a zero lock under a non-zero price`);
  return {
    id,
    price: quote.price.id,
    provider: end.provider,
    charge,
    draw: false,
    feeBps,
    usage: usageToText(end.usage ?? {}),
    detail,
  };
}

/** How the run went, and whether its client had left, as JSON. */
function detailText({ detail }: EndFrame, clientGone: boolean): string {
  const text = JSON.stringify(detail);
  return `${text.slice(0, -1)}${text === '{}' ? '' : ','}"clientGone":${clientGone}}`;
}

/** The quote of the provider that served. */
function quoteOf({ id, candidates }: BilledCall, { price }: EndFrame): Quote {
  for (const quote of candidates) {
    if (quote.price.id === price) return quote;
    for (const tier of Object.values(quote.serviceTiers ?? {})) if (tier.id === price) return { ...quote, price: tier };
  }
  throw new Error(`call ${id} ended with price ${price}, which its lock does not hold`);
}

type Charged = Pick<EndFrame, 'outcome' | 'usage' | 'costMax'>;
const settlementOf = ({ charged, fee, drawn, shortfall }: Settlement) => ({ charged, fee, drawn, shortfall });

/**
 * The cost of a run that ended: 0 for the outcome `free` or without usage, else the price of its usage, at most the
 * estimate. Usage of output past the cap arrives here measured, with a completion of at most the cap.
 */
function chargeOf(quote: Quote, end: Charged): MicroUsd {
  if (end.outcome === 'free' || !end.usage) return 0n;
  const full = cost(quote.price.rates, end.usage);
  const exact = (end.costMax ?? full) < full ? end.costMax! : full;
  return exact > quote.estimate ? quote.estimate : exact;
}

/**
 * If another process resolved the lock first, the consumer gets no error. It pays what was settled then, and nothing if
 * the lock was released or expired. Throws for every other refusal.
 */
async function resolutionOf(ledger: Pick<Ledger, 'find'>, id: string, result: SettleResult): Promise<Settlement> {
  if (result.ok) return settlementOf(result);
  if (result.reason !== 'already_resolved') throw new Error(`call ${id} could not be settled: ${result.reason}`);
  const record = await ledger.find(id);
  return record?.state === 'settled' ? settlementOf(record) : NOTHING;
}

function failureDetail(error: unknown, clientGone: boolean): string {
  const message = error instanceof Error ? error.message : String(error);
  return JSON.stringify({ outcome: 'failed', clientGone, error: message });
}

/** The end of the work of a pending call: what its EndFrame would have contained. */
type PendingCallEnd = Pick<EndFrame, 'price' | 'provider' | 'usage' | 'detail'> & {
  readonly outcome: 'complete' | 'cut' | 'free';
  /**
   * The estimate of the provider that did the work. The lock may be larger, because it was made for a dearer provider.
   * null takes the lock without its lendable part.
   */
  readonly most?: MicroUsd | null;
};

interface SettledPendingCall {
  readonly settlement: Settlement;
  /** The lock before this settlement. */
  readonly lock: LockRecord;
  /** True if the lock was resolved already. Then `settlement` is what was charged at that time. */
  readonly before: boolean;
}

interface SettlePendingCallOptions {
  readonly ledger: Pick<Ledger, 'find' | 'settle'>;
  readonly prices: Pick<PriceBook, 'find'>;
  readonly feeBps: number;
}

/**
 * Settles a pending call once, whichever gateway saw the end of its work. It charges by the price that the lock was
 * made with, at most the estimate. Resolves with null for a call without a lock. Rejects with LedgerUnavailable.
 */
export type SettlePendingCall = (id: string, conclusion: PendingCallEnd) => Promise<SettledPendingCall | null>;

export function createSettlePendingCall({ ledger, prices, feeBps }: SettlePendingCallOptions): SettlePendingCall {
  return async (id, { price: priceId, most = null, provider, usage, outcome, detail }) => {
    const lock = await ledger.find(id);
    if (!lock) return null;
    if (lock.state !== 'held') return { lock, settlement: settlementOf(lock), before: true };
    const price = await prices.find(priceId);
    if (!price) throw new Error(`call ${id}: price version ${priceId} is not stored`);
    const own = lock.amount - lock.lendable;
    const quote = { price, estimate: most !== null && most < own ? most : own };
    const result = await ledger.settle(
      settleOf(id, quote, { outcome, usage, provider }, JSON.stringify(detail), feeBps),
    );
    return { lock, settlement: await resolutionOf(ledger, id, result), before: !result.ok };
  };
}
