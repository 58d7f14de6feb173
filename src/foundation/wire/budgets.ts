import { dropOldest } from './collections.ts';

/** A token bucket for small things that each cost some microseconds, such as frames and chunks. */
export interface TokenBucket {
  /** How many may still pass. May be negative. */
  remaining(): number;
  take(count: number): void;
  /** Milliseconds until so many may pass. 0: now. */
  waitMs(count: number): number;
}

/** The size of a bucket, and what comes back in a second. */
export interface BudgetSize {
  readonly atOnce: number;
  readonly perSecond: number;
}

export function createBudget({ atOnce, perSecond }: BudgetSize, now = (): number => performance.now()): TokenBucket {
  let remaining = atOnce;
  let at = now();
  const refill = (): number => {
    const present = now();
    remaining = Math.min(atOnce, remaining + ((present - at) * perSecond) / 1000);
    at = present;
    return remaining;
  };
  return {
    remaining: refill,
    take(count) {
      remaining -= count;
    },
    waitMs: (count) => Math.max(0, ((count - refill()) * 1000) / perSecond),
  };
}

/** Beyond so many networks, the one that was asked for least recently is forgotten. Its budget is full again. */
const NETWORKS_MAX = 10_000;

/** One budget for each network. It outlives the connections, so that dialling again does not fill it. */
export class NetworkBudgets {
  readonly #budgets = new Map<string, TokenBucket>();
  readonly #size: BudgetSize;
  readonly #now: (() => number) | undefined;

  constructor(size: BudgetSize, now?: () => number) {
    this.#size = size;
    this.#now = now;
  }

  budgetOf(network: string): TokenBucket {
    const budget = this.#budgets.get(network) ?? createBudget(this.#size, this.#now);
    this.#budgets.delete(network);
    this.#budgets.set(network, budget);
    dropOldest(this.#budgets, NETWORKS_MAX);
    return budget;
  }

  isSpent(network: string): boolean {
    return (this.#budgets.get(network)?.remaining() ?? 0) < 0;
  }
}
