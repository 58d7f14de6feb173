import { dropOldest } from '#wire';
import { readCarriedSum, type CarriedSum, type CarryingBudget } from '#billing';
import { loadStatements, type Database, type Row } from '#store';
import {
  budgetPeriod,
  type CarriedUse,
  type LimitReset,
  LIMIT_RESETS,
  budgetName,
  ownerOfLimits,
  type LimitsSubject,
  tagBudgetName,
  type TagBudgetRule,
} from './budgets.ts';

/** A limit that may have got its period after spending in that period had begun. */
export interface CarryingLimit extends Pick<CarryingBudget, 'account' | 'scope' | 'name' | 'member' | 'tag'> {
  readonly limitReset: LimitReset | null;
  /** Epoch milliseconds of the last change of its period. null: the ledger's counter has all spending. */
  readonly countedSince: number | null;
}

/**
 * The spending in the current period of a limit from before the limit got that period. The ledger's counter lacks it.
 * The sums are computed from the ledger, where each lock names the budgets that it counts in. So no spending is lost or
 * counted twice, however often the period changes.
 */
export interface CarriedSums {
  /**
   * The sum for the period at `at` (epoch milliseconds). null if nothing is carried. Answers without the database if
   * the period began at least CHANGING_MS after the change. Never rejects: an error of the database is in the answer,
   * for the calls that count in the limit.
   */
  useOf(limit: CarryingLimit, at: number): CarriedUse | null | Promise<CarriedUse | null>;
  /**
   * Must be called before a limit gets a new period. Computes and stores the sum, which takes long for an account with
   * many calls. So after the change no call has to wait for it, on any gateway. Never rejects, so that a limit whose
   * sum cannot be read can be changed.
   */
  prepare(limit: Omit<CarryingLimit, 'countedSince'>): Promise<void>;
}

/** Callers that were admitted with the old budgets have made their locks within this time after a change. */
const CHANGING_MS = 10 * 60_000;
/**
 * A lock is in the tables at most this long after its time. A batch that waits longer for the database was given up
 * before.
 */
const SETTLING_MS = 2 * 60_000;
/**
 * Pause between two reads of a sum that may still change: REST_MS, or REST_TIMES the duration of the read if that is
 * longer.
 */
const REST_MS = 1_000;
const REST_TIMES = 20;
const KNOWN_MAX = 20_000;
/** Rows are kept longer than the 31 days after a period's end in which notices still read them. */
const KEPT_MS = 62 * 86_400_000;

interface SumRead {
  readonly sum: CarriedSum;
  /** Epoch milliseconds. */
  readonly asOf: number;
  readonly restMs: number;
}

interface CachedSum {
  lastRead: SumRead | null;
  running: { readonly since: number; readonly result: Promise<SumRead> } | null;
}

const SQL = loadStatements(import.meta.url, './sql/limits.sql', [
  'findCarriedSum',
  'keepCarriedSum',
  'forgetCarriedSums',
]);

export function createCarriedSums(
  database: Pick<Database, 'query' | 'snapshot' | 'engine'>,
  now: () => number,
): CarriedSums {
  const known = new Map<string, CachedSum>();

  const stored = async (budget: string): Promise<SumRead | null> => {
    const [row] = await database.query(SQL.findCarriedSum, [budget]);
    if (!row) return null;
    const [edge, spent] = [Number(row['edge']), row['spent'] as bigint];
    // `locked` is not stored, because a sum with running calls is never used as it is.
    const sum = { edge, settled: row['settled'] as bigint, spent, locked: 0n, running: row['running'] === 1n };
    return { sum, asOf: Number(row['as_of']), restMs: 0 };
  };

  const read = async (budget: CarryingBudget, end: number | null, before: SumRead | null, since: number) => {
    const asOf = now();
    const begun = performance.now();
    const sum = await readCarriedSum(database, budget, before?.sum ?? null, asOf - SETTLING_MS);
    const sumRead: SumRead = { sum, asOf, restMs: Math.max(REST_MS, (performance.now() - begun) * REST_TIMES) };
    const { edge, settled, spent, running } = sum;
    // A limit costs nothing to set. So of an account that has spent nothing only a sum is kept that took long to read.
    const isWorth = spent > 0n || running || sumRead.restMs > REST_MS;
    if (isWorth && (before === null || isFinal(sumRead, since))) {
      await database.query(SQL.keepCarriedSum, [budget.id, edge, settled, spent, running ? 1 : 0, asOf, end]);
      await database.query(SQL.forgetCarriedSums, [asOf - KEPT_MS]);
    }
    return sumRead;
  };

  const find = async (
    cache: CachedSum,
    budget: CarryingBudget,
    end: number | null,
    since: number,
  ): Promise<SumRead> => {
    const before = cache.lastRead ?? (await stored(budget.id));
    return before !== null && isFinal(before, since) ? before : read(budget, end, before, since);
  };

  /** The sum of the newest read, if it began after the change and is still fresh. Otherwise reads again. */
  const current = async (budget: CarryingBudget, end: number | null, since: number): Promise<CarriedUse | null> => {
    const cachedSum: CachedSum = known.get(budget.id) ?? { lastRead: null, running: null };
    known.delete(budget.id);
    dropOldest(known, KNOWN_MAX - 1);
    known.set(budget.id, cachedSum);
    const at = now();
    const isNew =
      cachedSum.lastRead !== null &&
      cachedSum.lastRead.asOf > since &&
      at >= cachedSum.lastRead.asOf &&
      at < cachedSum.lastRead.asOf + cachedSum.lastRead.restMs;
    if (cachedSum.lastRead !== null && (isNew || isFinal(cachedSum.lastRead, since)))
      return useOf(budget.id, cachedSum.lastRead);
    if (cachedSum.running === null || cachedSum.running.since <= since) {
      const running = { since: at, result: find(cachedSum, budget, end, since) };
      cachedSum.running = running;
      const over = (sumRead: SumRead | null) => {
        if (sumRead !== null && (cachedSum.lastRead === null || sumRead.asOf >= cachedSum.lastRead.asOf))
          cachedSum.lastRead = sumRead;
        if (cachedSum.running === running) cachedSum.running = null;
      };
      running.result.then(over, () => over(null));
    }
    return useOf(budget.id, await cachedSum.running.result);
  };

  return {
    useOf({ limitReset, countedSince, ...budget }, at) {
      if (countedSince === null) return null;
      const { id, start, end } = budgetPeriod(budget.name, limitReset, at);
      if (start !== null && start >= countedSince + CHANGING_MS) return null;
      return current({ ...budget, id, start }, end, countedSince).catch((unsummed: unknown) => ({
        budget: id,
        spent: 0n,
        locked: 0n,
        unsummed,
      }));
    },
    async prepare({ limitReset, ...budget }) {
      const at = now();
      const { id, start, end } = budgetPeriod(budget.name, limitReset, at);
      await current({ ...budget, id, start }, end, at).catch(() => null);
    },
  };
}

/** Whether the sum can no longer change. */
const isFinal = ({ sum, asOf }: SumRead, since: number): boolean =>
  !sum.running && asOf >= since + CHANGING_MS + SETTLING_MS;

const useOf = (budget: string, { sum: { spent, locked } }: SumRead): CarriedUse | null =>
  spent === 0n && locked === 0n ? null : { budget, spent, locked };

const TIMES: Readonly<Record<LimitReset | 'ever', string>> = {
  daily: 'daily_since',
  weekly: 'weekly_since',
  monthly: 'monthly_since',
  ever: 'ever_since',
};

/** One budget of an account or member. `row` has the time columns of `account_limits`. */
export function carryingBudget(
  account: string,
  subject: LimitsSubject,
  limitReset: LimitReset | null,
  row: Row,
): CarryingLimit {
  const isMember = ownerOfLimits(subject) === 'member';
  return {
    account,
    scope: isMember ? 'member' : 'account',
    name: budgetName(account, subject),
    member: isMember ? subject : null,
    limitReset,
    countedSince: timeOf(row, TIMES[limitReset ?? 'ever']),
  };
}

/** The budget of a tag. `since` as it is stored; without it the budget is new. */
export const carryingTag = (
  account: string,
  subject: LimitsSubject,
  { name, value, limitReset, since }: TagBudgetRule & { readonly since?: number },
): CarryingLimit => ({
  account,
  scope: 'account',
  name: tagBudgetName(account, subject, { name, value }),
  member: null,
  tag: { name, value },
  limitReset,
  countedSince: since ?? null,
});

/** The limit of a key. `row` has the columns of `api_keys`. */
export function carryingKey(row: Row): CarryingLimit {
  return {
    account: row['account'] as string,
    scope: 'key',
    name: row['hash'] as string,
    member: null,
    limitReset: LIMIT_RESETS.find((reset) => reset === row['limit_reset']) ?? null,
    countedSince: timeOf(row, 'counted_since'),
  };
}

const timeOf = (row: Row, column: string): number | null => {
  const time = row[column] ?? null;
  return time === null ? null : Number(time);
};
