import { loadStatement, type Database, type Row } from '#store';
import { dropOldest } from '#wire';
import type { MicroUsd } from '#billing';
import { periodAt } from '#auth/accounts';
import { keyBudget, limitBudgets, noticeBody, periodNames, reached, type WatchedBudget } from './threshold.ts';

interface BudgetLooksOptions {
  readonly database: Pick<Database, 'query'>;
  readonly now: () => number;
  /** The longest that a call or a task goes on, milliseconds. */
  readonly callMsMax: number;
  /** Told of each notice, on one gateway of the database. */
  readonly onNotice: (body: Readonly<Record<string, unknown>>) => void;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const WATCHED_LIMITS = load('watched-limits');
const WATCHED_KEYS = load('watched-keys');
const NOTE = load('note');

const PAGE = 500;
/** A period is looked at as before for this long after its end. */
const PERIOD_GRACE_MS = 60_000;
/** Pause between looks at periods that ended before that. */
const PAST_EVERY_MS = 60_000;
/** Days before this one that each of these looks reads. It reads one of the days before them, too, by turns. */
const PAST_DAYS = 2;
const DAY_MS = 86_400_000;
const NOTED_MAX = 20_000;
/** A budget takes some 200 bytes. */
const SEEN_MAX = 100_000;

/**
 * Returns a function that looks what was spent of all watched budgets, and notes once what was reached. A charge counts
 * in the period in which its call began, so periods are looked at for as long as their calls may go on.
 */
export function createBudgetLooks({ database, now, callMsMax, onNotice }: BudgetLooksOptions): () => Promise<void> {
  /** Notices that are in the table already, so that no look writes them again. */
  const noted = new Map<string, true>();

  /**
   * Spent of each budget when it was looked at last, until no call counts in it any more. Those that are in it when it
   * is full stay: all are looked at in one order, so that the oldest would be thrown away just before it is needed.
   */
  const seen = new Map<string, { readonly spent: MicroUsd; readonly until: number }>();
  let lookedAtPast = -Infinity;
  let turn = 0;

  /**
   * The percentages to tell of. Of a period that is over for long only those that were reached since the last look: by
   * a call that ended late, and not by a limit that was lowered afterwards.
   */
  const toTell = (budget: WatchedBudget, isPast: boolean): readonly number[] => {
    if (!isPast) return reached(budget);
    const before = seen.get(budget.id);
    if (before === undefined || before.spent === budget.spent) return [];
    const then = reached({ ...budget, spent: before.spent });
    return reached(budget).filter((percent) => !then.includes(percent));
  };

  const note = async (budget: WatchedBudget, end: number, isPast: boolean): Promise<void> => {
    const { id, limit, account, spent } = budget;
    for (const percent of toTell(budget, isPast)) {
      const name = `${id} ${limit} ${percent}`;
      if (noted.has(name)) continue;
      const at = now();
      const body = noticeBody(budget, percent, at);
      const isNew =
        (await database.query(NOTE, [id, limit, percent, account, at, JSON.stringify(body), at])).length > 0;
      dropOldest(noted, NOTED_MAX - 1);
      noted.set(name, true);
      if (isNew) onNotice(body);
    }
    // A budget without an end is never looked at as one that is over.
    if (end < Infinity && (seen.size < SEEN_MAX || seen.has(id)))
      seen.set(id, { spent, until: end + callMsMax + DAY_MS });
  };

  /** Looks at the periods of an instant: where `past` is given, at those that end with its day, before `past`. */
  const look = async (at: number, past?: number): Promise<void> => {
    const noteOne = async (budget: WatchedBudget): Promise<void> => {
      const end = budget.limitReset === null ? Infinity : periodAt(budget.limitReset, at).end;
      if (past === undefined || (end <= past && end - at <= DAY_MS)) await note(budget, end, past !== undefined);
    };
    const periods = periodNames(at);
    let [account, subject] = ['', ''];
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(WATCHED_LIMITS, [...periods, account, subject, PAGE]);
      for (const row of rows) for (const budget of limitBudgets(row, at)) await noteOne(budget);
      [account, subject] = [rows.at(-1)?.['account'] as string, rows.at(-1)?.['subject'] as string];
    }
    let hash = '';
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(WATCHED_KEYS, [...periods, hash, PAGE]);
      for (const row of rows) await noteOne(keyBudget(row));
      hash = rows.at(-1)?.['hash'] as string;
    }
  };

  /** Looks at periods that are over for long, in which calls may still count. */
  const lookAtPast = async (at: number): Promise<void> => {
    const past = at - PERIOD_GRACE_MS;
    const days: number[] = [];
    for (let day = past - DAY_MS; day > at - callMsMax - DAY_MS; day -= DAY_MS) days.push(day);
    const older = days.splice(PAST_DAYS);
    if (older.length > 0) days.push(older[turn++ % older.length]!);
    for (const day of days) await look(day, past);
    for (const [id, { until }] of seen) if (until < at) seen.delete(id);
  };

  return async () => {
    const at = now();
    if (Math.abs(at - lookedAtPast) >= PAST_EVERY_MS) {
      await lookAtPast(at);
      lookedAtPast = at;
    }
    const before = at - PERIOD_GRACE_MS;
    if (periodNames(before).join() !== periodNames(at).join()) await look(before);
    await look(at);
  };
}
