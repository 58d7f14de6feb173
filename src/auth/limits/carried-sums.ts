import { dropOldest } from '#wire';
import { readCarriedSum, type CarriedSum, type CarryingBudget } from '#billing';
import { loadStatement, type Database } from '#store';
import { budgetPeriod, type CarriedUse, type LimitReset } from '../accounts/spend-period.ts';

/** A limit whose period may be newer than what was spent in it. */
export interface CarryingLimit extends Pick<CarryingBudget, 'account' | 'of' | 'name' | 'member'> {
  readonly limitReset: LimitReset | null;
  /** When its period became what it is, epoch milliseconds; null: its counter has all that counts. */
  readonly countedSince: number | null;
}

/**
 * The sums of what was spent in the period of a limit before the limit had that period. They are derived from the
 * books, so that nothing is lost or counted twice however often the period changes: a lock says what it counts in.
 */
export interface CarriedSums {
  /**
   * Of the period of an instant (epoch milliseconds). null where nothing is carried: at once, without the database,
   * where the period began after the change. Rejects with the database's error.
   */
  of(limit: CarryingLimit, at: number): CarriedUse | null | Promise<CarriedUse | null>;
  /**
   * To be called before a limit gets its period: reads what takes long in an account with many calls, so that no call
   * waits for it after the change, on no gateway.
   */
  prepare(limit: Omit<CarryingLimit, 'countedSince'>): Promise<void>;
}

/** Callers who were let in with the budgets of before have made their locks by then. */
const CHANGING_MS = 10 * 60_000;
/** A lock is in the tables so long after its time: a group that waits for its database is given up much earlier. */
const SETTLING_MS = 2 * 60_000;
/** Pause between two looks of a sum that may still change: this, or so many times as long as the look took. */
const REST_MS = 1_000;
const REST_TIMES = 20;
const KNOWN_MAX = 20_000;
/** Notices look at a period for 31 days after its end. */
const KEPT_MS = 62 * 86_400_000;

interface Look {
  readonly sum: CarriedSum;
  /** Epoch milliseconds. */
  readonly asOf: number;
  readonly restMs: number;
}

interface Known {
  look: Look | null;
  /** The look that is under way. */
  running: { readonly since: number; readonly result: Promise<Look> } | null;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const FIND = load('find-carried-sum');
const KEEP = load('keep-carried-sum');
const FORGET = load('forget-carried-sums');

export function createCarriedSums(database: Pick<Database, 'query' | 'snapshot'>, now: () => number): CarriedSums {
  const known = new Map<string, Known>();

  const kept = async (budget: string): Promise<Look | null> => {
    const [row] = await database.query(FIND, [budget]);
    if (!row) return null;
    const [edge, spent] = [Number(row['edge']), row['spent'] as bigint];
    // What the running ones had locked is not kept, as nobody goes by such a sum.
    const sum = { edge, settled: row['settled'] as bigint, spent, locked: 0n, running: row['running'] === 1n };
    return { sum, asOf: Number(row['as_of']), restMs: 0 };
  };

  const look = async (budget: CarryingBudget, end: number | null, before: Look | null, since: number) => {
    const asOf = now();
    const begun = performance.now();
    const sum = await readCarriedSum(database, budget, before?.sum ?? null, asOf - SETTLING_MS);
    const found: Look = { sum, asOf, restMs: Math.max(REST_MS, (performance.now() - begun) * REST_TIMES) };
    if (before === null || isFinal(found, since)) {
      const { edge, settled, spent, running } = sum;
      await database.query(KEEP, [budget.id, edge, settled, spent, running ? 1 : 0, asOf, end]);
      await database.query(FORGET, [asOf - KEPT_MS]);
    }
    return found;
  };

  const find = async (of: Known, budget: CarryingBudget, end: number | null, since: number): Promise<Look> => {
    const before = of.look ?? (await kept(budget.id));
    return before !== null && isFinal(before, since) ? before : look(budget, end, before, since);
  };

  /** The newest look, from after the change, that is not older than it may be. */
  const current = async (budget: CarryingBudget, end: number | null, since: number): Promise<CarriedUse | null> => {
    const of: Known = known.get(budget.id) ?? { look: null, running: null };
    known.delete(budget.id);
    dropOldest(known, KNOWN_MAX - 1);
    known.set(budget.id, of);
    const at = now();
    const isNew = of.look !== null && of.look.asOf > since && at >= of.look.asOf && at < of.look.asOf + of.look.restMs;
    if (of.look !== null && (isNew || isFinal(of.look, since))) return useOf(budget.id, of.look);
    if (of.running === null || of.running.since <= since) {
      const running = { since: at, result: find(of, budget, end, since) };
      of.running = running;
      const over = (found: Look | null) => {
        if (found !== null && (of.look === null || found.asOf >= of.look.asOf)) of.look = found;
        if (of.running === running) of.running = null;
      };
      running.result.then(over, () => over(null));
    }
    return useOf(budget.id, await of.running.result);
  };

  return {
    of({ limitReset, countedSince, ...budget }, at) {
      if (countedSince === null) return null;
      const { id, start, end } = budgetPeriod(budget.name, limitReset, at);
      if (start !== null && start >= countedSince + CHANGING_MS) return null;
      return current({ ...budget, id, start }, end, countedSince);
    },
    async prepare({ limitReset, ...budget }) {
      const at = now();
      const { id, start, end } = budgetPeriod(budget.name, limitReset, at);
      await current({ ...budget, id, start }, end, at);
    },
  };
}

/** Nothing changes it any more. */
const isFinal = ({ sum, asOf }: Look, since: number): boolean =>
  !sum.running && asOf >= since + CHANGING_MS + SETTLING_MS;

const useOf = (budget: string, { sum: { spent, locked } }: Look): CarriedUse | null =>
  spent === 0n && locked === 0n ? null : { budget, spent, locked };
