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
const DAY_MS = 86_400_000;
const NOTED_MAX = 20_000;

/**
 * Returns a function that looks what was spent of all watched budgets, and notes once what was reached. A charge counts
 * in the period in which its call began, so periods are looked at for as long as their calls may go on.
 */
export function createBudgetLooks({ database, now, callMsMax, onNotice }: BudgetLooksOptions): () => Promise<void> {
  /** Notices that are in the table already, so that no look writes them again. */
  const noted = new Map<string, true>();

  /** Spent of each budget when it was looked at last. */
  const spentBefore = new Map<string, MicroUsd>();
  let lookedAtPast = -Infinity;

  /**
   * The percentages to tell of. Of a period that is over for long only those that were reached since the last look: by
   * a call that ended late, and not by a limit that was lowered afterwards.
   */
  const toTell = (budget: WatchedBudget, isPast: boolean): readonly number[] => {
    if (!isPast) return reached(budget);
    const before = spentBefore.get(budget.id);
    if (before === undefined || before === budget.spent) return [];
    const then = reached({ ...budget, spent: before });
    return reached(budget).filter((percent) => !then.includes(percent));
  };

  const note = async (budget: WatchedBudget, isPast: boolean): Promise<void> => {
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
    spentBefore.delete(id);
    dropOldest(spentBefore, NOTED_MAX - 1);
    spentBefore.set(id, spent);
  };

  /** Looks at the periods of an instant. Those that ended before `past` are over for long. */
  const look = async (at: number, past = -Infinity): Promise<void> => {
    const isPast = ({ limitReset }: WatchedBudget) => limitReset !== null && periodAt(limitReset, at).end <= past;
    const periods = periodNames(at);
    let [account, subject] = ['', ''];
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(WATCHED_LIMITS, [...periods, account, subject, PAGE]);
      for (const row of rows) for (const budget of limitBudgets(row, at)) await note(budget, isPast(budget));
      [account, subject] = [rows.at(-1)?.['account'] as string, rows.at(-1)?.['subject'] as string];
    }
    let hash = '';
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(WATCHED_KEYS, [...periods, hash, PAGE]);
      for (const row of rows) {
        const budget = keyBudget(row);
        await note(budget, isPast(budget));
      }
      hash = rows.at(-1)?.['hash'] as string;
    }
  };

  return async () => {
    const at = now();
    if (Math.abs(at - lookedAtPast) >= PAST_EVERY_MS) {
      const past = at - PERIOD_GRACE_MS;
      for (let day = past - DAY_MS; day > at - callMsMax - DAY_MS; day -= DAY_MS) await look(day, past);
      lookedAtPast = at;
    }
    const before = at - PERIOD_GRACE_MS;
    if (periodNames(before).join() !== periodNames(at).join()) await look(before);
    await look(at);
  };
}
