import { Departure, type Leaving } from './departure.ts';
import type { Budget, Ledger, LockRequest, LockResult, Settlement, SettleRequest, SettleResult } from './ledger.ts';
import type { MicroUsd } from './money.ts';
import { cost, usageToText, type Price, type Usage } from './price.ts';

/** The part of a call that billing needs; the pipeline's Call carries it. */
export interface Billable {
  readonly id: string;
  readonly account: string;
  /** The highest cost at each provider that the call can go to; the highest estimate is locked. */
  readonly quotes: readonly Quote[];
  readonly budgets: readonly Budget[];
  /** Epoch milliseconds. */
  readonly lockExpiresAt: number;
  readonly lockDetail: string;
  /** False when the estimates are no ceilings: settlement may then draw on the available balance. */
  readonly ceiling: boolean;
  /** Id of a held lock that this one takes the place of; null for none. */
  readonly continues: string | null;
  /** Id of the held lock whose money this one is made of; null for the account's own. */
  readonly parent: string | null;
  /** Locked on top of the highest estimate, for calls that are made under this one. */
  readonly lendable: MicroUsd;
  /** Nothing keeps the call's lock, and nobody draws on it. Default false. */
  readonly endsWithCall?: boolean;
}

interface Quote {
  readonly price: Price;
  readonly estimate: MicroUsd;
}

/** A reply began, and goes on. Sent again when it broke off before its first data and another provider took over. */
interface HeadFrame {
  readonly type: 'head';
  readonly status: number;
  /** The provider that serves. */
  readonly provider: { readonly id: string; readonly name: string };
}

interface DataFrame {
  readonly type: 'data';
  readonly bytes: Uint8Array;
}

/**
 * The run is over and this is what it used. The last frame of an executor; billing turns it into a SettledFrame.
 */
export interface EndFrame {
  readonly type: 'end';
  /** Id of the price that served, one of the call's. */
  readonly price: string;
  readonly provider: string;
  readonly providerName: string;
  readonly usage: Usage | null;
  /**
   * `cut`: it was ended before its own end, though nothing failed: what was produced is charged. `pending`: the
   * lock is kept, for the call that goes on with the work or until it expires.
   */
  readonly outcome: 'complete' | 'cut' | 'free' | 'over_cap' | 'pending';
  readonly estimated: boolean;
  /** How the run went, kept on the generation as JSON. */
  readonly detail: Readonly<Record<string, unknown>>;
  readonly tail: unknown;
}

/** The last frame that a protocol sees: what was charged, durable. */
export interface SettledFrame {
  readonly type: 'settled';
  readonly settlement: Settlement;
  /** The work goes on and the lock is kept: nothing is charged yet, and what will be is not known. */
  readonly pending?: true;
  readonly usage: Usage | null;
  readonly provider: string;
  readonly providerName: string;
  /**
   * Charged for this call and for all that were made under it; absent where none could be. Those that go on count
   * with all that they hold.
   */
  readonly runCost?: MicroUsd | undefined;
  /** Compact JWS, where one was asked for. */
  readonly receipt: string | null;
  readonly tail: unknown;
}

export type Frame = HeadFrame | DataFrame | EndFrame | SettledFrame;

export type BilledHandler<C> = (call: C, signal: Leaving) => AsyncIterable<Frame, void, undefined>;

interface BillOptions<C> {
  readonly ledger: Ledger;
  readonly billable: (call: C) => Billable;
  readonly feeBps: number;
  /** After the client is gone: how long and how many bytes the upstream is still read for its usage. */
  readonly drainMs: number;
  readonly drainBytes: number;
  /**
   * Before the first lock of a call, for what has to be there by then. null for nothing. Rejects with the error
   * that the caller sees.
   */
  readonly prepay?: (call: C) => Promise<void> | null;
  /**
   * A refused lock: the call to lock in its place, with fewer quotes, those that the account can pay, or the same
   * where the account has been given what was missing; or the error that the caller sees, also by rejecting.
   */
  readonly refuse: (call: C, result: Extract<LockResult, { ok: false }>) => C | Error | Promise<C | Error>;
  /** The signed receipt that goes with a settled frame, or null. */
  readonly receipt: (call: C, end: EndFrame, settlement: Settlement) => string | null;
  /** A call begins. It ends with one of the two below. */
  readonly onStarted: (call: C) => void;
  /** No lock was made: it was refused, or the ledger could not be reached. */
  readonly onRefused: (call: C, error: unknown) => void;
  /** A lock was made, and this process is done with it. */
  readonly onResolved: (call: C, resolution: Resolution) => void;
}

/**
 * How a lock ended. `pending`: it has not, the work waits for the consumer. `unresolved`: the database could not be
 * reached, and the lock will expire.
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
 * The one billing middleware: lock, run, then settle or release, whatever becomes of the client.
 *
 * No work is forwarded before its lock is durable, but for what can cost nothing. The frame that ends a reply is not
 * passed on before its settlement is. A consumer that stops reading (abort of `signal`, or return of the iterator) does
 * not end the run: the upstream is read on, within `drainMs` and `drainBytes`, so that what was produced is charged by
 * reported usage.
 */
export function createBill<C>(options: BillOptions<C>): (next: BilledHandler<C>) => BilledHandler<C> {
  return (next) => (call, signal) => run(options, next, call, signal);
}

async function* run<C>(
  options: BillOptions<C>,
  next: BilledHandler<C>,
  asked: C,
  signal: Leaving,
): AsyncGenerator<Frame, void, undefined> {
  options.onStarted(asked);
  const locked = await lock(options, asked);
  const { call, billable, isFree } = locked;

  const upstream = new Departure();
  let drainTimer: NodeJS.Timeout | undefined;
  let drainedBytes = 0;
  let gone = false;
  let resolved = false;

  const leave = () => {
    if (gone) return;
    gone = true;
    drainTimer = setTimeout(() => upstream.abort(), options.drainMs);
  };
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);

  const resolve = (state: Resolution['state'], settlement: Settlement, end: EndFrame | null, error: unknown) => {
    resolved = true;
    options.onResolved(call, { state, settlement, end, error, clientGone: gone });
  };
  const finish = async (end: EndFrame): Promise<SettledFrame> => {
    if (end.outcome === 'pending') {
      try {
        if (isFree) await options.ledger.lock(lockOf(billable));
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
      result = await ended(options.ledger, locked, () => options.ledger.settle(settleOf(options, billable, end, gone)));
      settlement = result.ok ? settlementOf(result) : await resolutionOf(options.ledger, billable.id, result);
    } catch (error) {
      // Never release after an attempt to settle: it may have been committed. The lock expires if it was not.
      resolve('unresolved', NOTHING, end, error);
      throw error;
    }
    // What somebody else settled was told by him.
    resolve('settled', result.ok ? settlement : NOTHING, end, null);
    const runCost = billable.lendable > 0n ? await runCostOf(options.ledger, billable.id, settlement) : undefined;
    return {
      type: 'settled',
      settlement,
      runCost,
      usage: end.usage,
      provider: end.provider,
      providerName: end.providerName,
      receipt: options.receipt(call, end, settlement),
      tail: end.tail,
    };
  };
  const fail = async (error: unknown): Promise<void> => {
    try {
      await ended(options.ledger, locked, () =>
        options.ledger.release({ id: billable.id, detail: failureDetail(error, gone) }),
      );
    } catch (unavailable) {
      resolve('unresolved', NOTHING, null, unavailable);
      return;
    }
    resolve('released', NOTHING, null, error);
  };
  const drain = (frame: Frame) => {
    if (frame.type === 'data' && (drainedBytes += frame.bytes.byteLength) > options.drainBytes) upstream.abort();
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
    // The consumer stopped iterating before the end: read on for the usage, then resolve.
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
    await frames.return?.();
  }
}

/** A call that costs nothing is locked with its end, in one group: both are one row. */
const ended = <R>(ledger: Ledger, { billable, isFree }: Locked<unknown>, end: () => Promise<R>): Promise<R> =>
  isFree
    ? Promise.all([ledger.lock({ ...lockOf(billable), workDone: true }), end()]).then(([, result]) => result)
    : end();

const pendingFrame = ({ usage, provider, providerName, tail }: EndFrame): SettledFrame => ({
  type: 'settled',
  settlement: NOTHING,
  pending: true,
  usage,
  provider,
  providerName,
  receipt: null,
  tail,
});

/** Nothing where the database is away: what is charged is settled, and shown with the call's record. */
async function runCostOf(
  ledger: Pick<Ledger, 'find'>,
  id: string,
  { charged }: Settlement,
): Promise<MicroUsd | undefined> {
  const record = await ledger.find(id).catch(() => null);
  return record === null ? undefined : charged + record.lent;
}

/** No money can move by the call, whatever becomes of it. */
const costsNothing = ({ quotes, lendable, parent, continues, endsWithCall = false }: Billable): boolean =>
  endsWithCall &&
  lendable === 0n &&
  parent === null &&
  continues === null &&
  quotes.every(({ estimate }) => estimate === 0n);

interface Locked<C> {
  readonly call: C;
  readonly billable: Billable;
  /** It costs nothing, and so has no lock before its end. */
  readonly isFree: boolean;
}

/** Locks the call as asked, or what of it the account can pay. */
async function lock<C>(options: BillOptions<C>, asked: C): Promise<Locked<C>> {
  try {
    let call = asked;
    const paid = options.prepay?.(asked) ?? null;
    if (paid !== null) await paid;
    // Given to the ledger before the lock that takes its place, and so in one group with it. Where it has ended
    // already, there is nothing to give back.
    let billable = options.billable(asked);
    if (costsNothing(billable)) return { call, billable, isFree: true };
    const { continues } = billable;
    if (continues !== null) void options.ledger.release({ id: continues, detail: CONTINUED }).catch(() => {});
    for (;;) {
      const result = await options.ledger.lock(lockOf(billable));
      if (result.ok) return { call, billable, isFree: false };
      const refused = await options.refuse(call, result);
      if (refused instanceof Error) throw refused;
      call = refused;
      billable = options.billable(call);
    }
  } catch (error) {
    options.onRefused(asked, error);
    throw error;
  }
}

function lockOf({ id, account, quotes, lendable, parent, lockExpiresAt, lockDetail, budgets }: Billable): LockRequest {
  let estimate = 0n;
  const prices: string[] = [];
  for (const quote of quotes) {
    if (quote.estimate > estimate) estimate = quote.estimate;
    prices.push(quote.price.id);
  }
  const amount = estimate + lendable;
  const own = { id, account, amount, lendable, prices, expiresAt: lockExpiresAt, detail: lockDetail, budgets };
  return parent === null ? own : { ...own, parent };
}

const CONTINUED = JSON.stringify({ outcome: 'continued' });

function settleOf<C>(
  options: BillOptions<C>,
  { id, quotes, ceiling }: Billable,
  end: EndFrame,
  clientGone: boolean,
): SettleRequest {
  const quote = quotes.find((candidate) => candidate.price.id === end.price);
  if (!quote) throw new Error(`call ${id} ended with price ${end.price}, which its lock does not hold`);
  const charge = chargeOf(quote, end, ceiling);
  if (charge > 0n && quote.estimate === 0n) throw new Error(`call ${id} has a zero lock under a non-zero price`);
  return {
    id,
    price: end.price,
    provider: end.provider,
    charge,
    draw: !ceiling,
    feeBps: options.feeBps,
    usage: usageToText(end.usage ?? {}),
    detail: JSON.stringify({ ...end.detail, clientGone }),
  };
}

const settlementOf = ({ charged, fee, drawn, shortfall }: Settlement) => ({ charged, fee, drawn, shortfall });

/**
 * The cost of a run that ended: nothing where it failed by its own words or has no usage, else the price of its
 * usage. That of output past its cap is measured, with a completion of at most the cap.
 */
export function chargeOf(quote: Quote, end: Pick<EndFrame, 'outcome' | 'usage'>, ceiling: boolean): MicroUsd {
  if (end.outcome === 'free' || !end.usage) return 0n;
  const exact = cost(quote.price.rates, end.usage);
  return ceiling && exact > quote.estimate ? quote.estimate : exact;
}

/**
 * A lock that somebody else resolved first is no error to the consumer: it pays what was settled then, and nothing
 * where it expired.
 */
export async function resolutionOf(
  ledger: Pick<Ledger, 'find'>,
  id: string,
  result: SettleResult,
): Promise<Settlement> {
  if (result.ok) return settlementOf(result);
  if (result.reason !== 'already_resolved') throw new Error(`call ${id} could not be settled: ${result.reason}`);
  const record = await ledger.find(id);
  return record?.state === 'settled' ? settlementOf(record) : NOTHING;
}

function failureDetail(error: unknown, clientGone: boolean): string {
  return JSON.stringify({
    outcome: 'failed',
    clientGone,
    error: error instanceof Error ? error.message : String(error),
  });
}
