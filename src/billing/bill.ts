import type { Budget, Ledger, LockResult, Settlement, SettleResult } from './ledger.ts';
import type { MicroUsd } from './money.ts';
import { cost, usageToText, type Price, type Usage } from './price.ts';

/** The part of a call that billing needs; the pipeline's Call carries it. */
export interface Billable {
  readonly id: string;
  readonly account: string;
  /** What is locked: the highest the call can cost at any of `prices`. */
  readonly amount: MicroUsd;
  readonly prices: readonly Price[];
  readonly budget: Budget | null;
  /** Epoch milliseconds. */
  readonly lockExpiresAt: number;
  readonly lockDetail: string;
  /** False when the estimate is no ceiling: settlement may then draw on the available balance. */
  readonly ceiling: boolean;
}

/** The reply began. Sent at most once. */
export interface HeadFrame {
  readonly type: 'head';
  readonly status: number;
  /** The provider that serves. */
  readonly provider: { readonly id: string; readonly name: string };
}

export interface DataFrame {
  readonly type: 'data';
  readonly bytes: Uint8Array;
}

/** The run is over and this is what it used. The last frame of an executor; billing turns it into a SettledFrame. */
export interface EndFrame {
  readonly type: 'end';
  /** Id of the price that served, one of the call's. */
  readonly price: string;
  readonly provider: string;
  readonly usage: Usage | null;
  readonly outcome: 'complete' | 'free' | 'over_cap';
  readonly estimated: boolean;
  readonly detail: string;
  readonly tail: unknown;
}

/** The last frame that a protocol sees: what was charged, durable. */
export interface SettledFrame {
  readonly type: 'settled';
  readonly settlement: Settlement;
  readonly usage: Usage | null;
  readonly provider: string;
  readonly tail: unknown;
}

export type Frame = HeadFrame | DataFrame | EndFrame | SettledFrame;

export type BilledHandler<C> = (call: C, signal: AbortSignal) => AsyncIterable<Frame>;

export interface BillOptions<C> {
  readonly ledger: Ledger;
  readonly billable: (call: C) => Billable;
  readonly feeBps: number;
  /** After the client is gone: how long and how many bytes the upstream is still read for its usage. */
  readonly drainMs: number;
  readonly drainBytes: number;
  /** Turns a refused lock into the error that the caller sees. */
  readonly refuse: (call: C, result: Extract<LockResult, { ok: false }>) => Error;
  /** Called once per lock when it is resolved by this process. */
  readonly onResolved?: (call: C, resolution: Resolution) => void;
}

export interface Resolution {
  readonly state: 'settled' | 'released';
  readonly settlement: Settlement;
  readonly usage: Usage | null;
  readonly provider: string | null;
  readonly error: unknown;
  readonly clientGone: boolean;
}

const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

/**
 * The one billing middleware: lock, run, then settle or release, whatever becomes of the client.
 *
 * No work is forwarded before its lock is durable, and the frame that ends a reply is not passed on before its settlement is.
 * A consumer that stops reading (abort of `signal`, or return of the iterator) does not end the run:
 * the upstream is read on, within `drainMs` and `drainBytes`, so that what was produced is charged by reported usage.
 */
export function createBill<C>(options: BillOptions<C>): (next: BilledHandler<C>) => BilledHandler<C> {
  return (next) => (call, signal) => run(options, next, call, signal);
}

async function* run<C>(options: BillOptions<C>, next: BilledHandler<C>, call: C, signal: AbortSignal): AsyncGenerator<Frame, void, undefined> {
  const { ledger } = options;
  const billable = options.billable(call);
  const locked = await ledger.lock({
    id: billable.id,
    account: billable.account,
    amount: billable.amount,
    prices: billable.prices.map((price) => price.id),
    expiresAt: billable.lockExpiresAt,
    detail: billable.lockDetail,
    ...(billable.budget ? { budget: billable.budget } : {}),
  });
  if (!locked.ok) throw options.refuse(call, locked);

  const upstream = new AbortController();
  let drainTimer: NodeJS.Timeout | undefined;
  let drained = 0;
  let gone = false;
  const leave = () => {
    if (gone) return;
    gone = true;
    drainTimer = setTimeout(() => upstream.abort(new Error('client gone')), options.drainMs);
  };
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();

  let resolved = false;
  let frames: AsyncIterator<Frame> | undefined;

  const finish = async (end: EndFrame): Promise<SettledFrame> => {
    const settlement = await settle(options, billable, end);
    resolved = true;
    options.onResolved?.(call, { state: 'settled', settlement, usage: end.usage, provider: end.provider, error: null, clientGone: gone });
    return { type: 'settled', settlement, usage: end.usage, provider: end.provider, tail: end.tail };
  };

  try {
    frames = next(call, upstream.signal)[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await frames.next();
      if (done) break;
      if (value.type === 'end') yield await finish(value);
      else {
        if (gone && value.type === 'data' && (drained += value.bytes.byteLength) > options.drainBytes) upstream.abort(new Error('client gone'));
        yield value;
      }
    }
  } catch (error) {
    if (!resolved) {
      await release(options, billable, error);
      resolved = true;
      options.onResolved?.(call, { state: 'released', settlement: NOTHING, usage: null, provider: null, error, clientGone: gone });
    }
    throw error;
  } finally {
    // The consumer stopped iterating before the end: read on for the usage, then resolve.
    if (!resolved && frames) {
      leave();
      try {
        for (;;) {
          const { done, value } = await frames.next();
          if (done) break;
          if (value.type === 'end') {
            await finish(value);
            break;
          }
          if (value.type === 'data' && (drained += value.bytes.byteLength) > options.drainBytes) upstream.abort(new Error('client gone'));
        }
        if (!resolved) await release(options, billable, new Error('the run ended without an end frame'));
      } catch (error) {
        if (!resolved) {
          await release(options, billable, error);
          options.onResolved?.(call, { state: 'released', settlement: NOTHING, usage: null, provider: null, error, clientGone: true });
        }
      }
    }
    clearTimeout(drainTimer);
    signal.removeEventListener('abort', leave);
  }
}

async function settle<C>(options: BillOptions<C>, billable: Billable, end: EndFrame): Promise<Settlement> {
  const price = billable.prices.find((candidate) => candidate.id === end.price);
  if (!price) throw new Error(`call ${billable.id} ended with price ${end.price}, which its lock does not hold`);
  // Ending 6: output past the budget costs the lock. Endings by the provider's failure, and replies without usage, are free.
  const charge = end.outcome === 'free' || !end.usage ? 0n : end.outcome === 'over_cap' ? billable.amount : cost(price.rates, end.usage);
  const result = await options.ledger.settle({
    id: billable.id,
    price: end.price,
    provider: end.provider,
    charge,
    draw: !billable.ceiling,
    feeBps: options.feeBps,
    usage: usageToText(end.usage ?? {}),
    detail: end.detail,
  });
  return resolution(billable, result);
}

/** A lock that somebody else resolved first (it expired) is no error to the consumer: it pays nothing more. */
function resolution(billable: Billable, result: SettleResult): Settlement {
  if (result.ok) return { charged: result.charged, fee: result.fee, drawn: result.drawn, shortfall: result.shortfall };
  if (result.reason === 'already_resolved') return NOTHING;
  throw new Error(`call ${billable.id} could not be settled: ${result.reason}`);
}

async function release<C>(options: BillOptions<C>, billable: Billable, error: unknown): Promise<void> {
  await options.ledger.release({ id: billable.id, detail: JSON.stringify({ error: error instanceof Error ? error.message : String(error) }) });
}
