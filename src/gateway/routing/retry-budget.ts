import { createSlidingCount } from './sliding-count.ts';

/** Bounds the retries of the whole process, so that failover cannot multiply the load of an outage. */
export interface RetryBudget {
  /** A call begins its first attempt, at this time of the budget's clock. */
  called(at: number): void;
  /** Takes one retry; false when the budget is spent, and the failure stands. */
  take(): boolean;
}

interface RetryBudgetOptions {
  readonly now: () => number;
  /** Retries per call. */
  readonly ratio?: number;
  /** Retries that are always there in a window, so that a quiet gateway can fail over at all. */
  readonly reserve?: number;
}

const SLOTS = 10;
const SLOT_MS = 1_000;
const CALL = 0;
const RETRY = 1;

/** Within any ten seconds, retries stay at or below `ratio` of the calls plus `reserve`. */
export function createRetryBudget({ now, ratio = 0.2, reserve = 10 }: RetryBudgetOptions): RetryBudget {
  const recent = createSlidingCount({ slots: SLOTS, slotMs: SLOT_MS, kinds: 2 });
  return {
    called(at) {
      recent.add(CALL, at);
    },
    take() {
      const at = now();
      if (recent.total(RETRY, at) + 1 > ratio * recent.total(CALL, at) + reserve) return false;
      recent.add(RETRY, at);
      return true;
    },
  };
}
