import { type BudgetSize, createBudget } from '#wire/budgets';

/** Texts of each kind that are logged at once, and then one in a minute. */
const TEXTS: BudgetSize = { atOnce: 100, perSecond: 1 / 60 };

/** Logs a package over all its processes: it could end for a new budget. */
export interface PackageLog {
  /** The end of its process, or of its start. The pauses between starts bound these texts. */
  own(text: string): void;
  /** A line that the package wrote. It may write one with each call. */
  line(text: string): void;
  /** An address that it did not get. */
  refused(text: string): void;
}

export function createPackageLog(log: (text: string) => void, now = () => performance.now()): PackageLog {
  return { own: log, line: bounded(log, now), refused: bounded(log, now) };
}

/** Passes texts on within the budget, and drops all others. */
function bounded(log: (text: string) => void, now: () => number): (text: string) => void {
  const budget = createBudget(TEXTS, now);
  return (text) => {
    if (budget.remaining() < 1) return;
    budget.take(1);
    log(text);
  };
}
