import { createSlidingCount } from '#catalog';

/**
 * Limits the retries of the whole process at providers that were tried, failed lately or may refuse the request too, so
 * that failover cannot multiply the load during an outage. The first try at another provider that works does not count.
 */
export interface RetryBudget {
  /** Counts a call that begins its first attempt. `at`: on the clock of the budget. */
  called(at: number): void;
  /** Takes one retry. Returns false if the budget is used up; the call then fails without a retry. */
  take(): boolean;
}

interface RetryBudgetOptions {
  readonly now: () => number;
  /** Retries per call. */
  readonly ratio?: number;
  /** Retries that are always allowed in a window, so that a gateway with few calls can fail over at all. */
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
