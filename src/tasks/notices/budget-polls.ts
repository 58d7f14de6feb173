import { loadStatement, type Database, type Row } from '#store';
import type { MicroUsd } from '#billing';
import { createCarriedSums } from '#auth';
import { periodAt } from '#auth/accounts';
import {
  isOperators,
  keyBudget,
  limitBudgets,
  noticeBody,
  periodNames,
  reached,
  type WatchedBudget,
} from './threshold.ts';

interface BudgetPollsOptions {
  readonly database: Pick<Database, 'query' | 'snapshot'>;
  readonly now: () => number;
  /** Called for each notice, on one gateway of the database. `isOperators`: the operator set the limit. */
  readonly onNotice: (body: Readonly<Record<string, unknown>>, isOperators: boolean) => void;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const WATCHED_LIMITS = load('watched-limits');
const WATCHED_KEYS = load('watched-keys');
const NOTE = load('note');

const PAGE = 500;
/** For this long after its end, a period is checked like the current one. */
const PERIOD_GRACE_MS = 60_000;
/** Pause between checks of periods that ended earlier. */
const PAST_EVERY_MS = 60_000;
/** Past days that each of these checks reads. It also reads one older day, a different one each time. */
const PAST_DAYS = 2;
/**
 * The oldest past day that is checked. A task may last this long, so its charge is still seen. All gateways may also be
 * down for this long.
 */
const DAYS = 31;
const DAY_MS = 86_400_000;
/** A budget takes about 200 bytes. */
const NOTED_MAX = 100_000;

/** The notices of a budget that are already in the table. */
interface Noted {
  readonly limit: MicroUsd;
  readonly percents: readonly number[];
  /** Epoch milliseconds. After this time the budget's period is not checked any more. */
  readonly until: number;
}

/**
 * Returns a function that checks the spending of all watched budgets and records each reached percentage once. A charge
 * counts in the period in which its call began, so periods are checked long after their end. The check needs no state
 * in memory, so the first check after a start sees what was charged during the downtime.
 */
export function createBudgetPolls({ database, now, onNotice }: BudgetPollsOptions): () => Promise<void> {
  /**
   * A cache, so that checks do not write the same notices again. When it is full, new entries are not added. Budgets
   * are always checked in the same order, so evicting the oldest entry would remove the one that is needed next.
   */
  const noted = new Map<string, Noted>();
  let lookedAtPast = -Infinity;
  let turn = 0;

  const sums = createCarriedSums(database, now);

  const note = async (counted: WatchedBudget, period: number, end: number): Promise<void> => {
    const { id, limit, account, since } = counted;
    // A limit that was changed after the period causes no notice for it.
    if (since >= end) return;
    const carried = await sums.of(counted.carrying, period);
    const budget = carried === null ? counted : { ...counted, spent: counted.spent + carried.spent };
    const before = noted.get(id);
    const known = before?.limit === limit ? before.percents : [];
    const due = reached(budget).filter((percent) => !known.includes(percent));
    if (due.length === 0) return;
    for (const percent of due) {
      const at = now();
      const body = noticeBody(budget, percent, at);
      const rows = await database.query(NOTE, [id, limit, percent, account, at, JSON.stringify(body), at]);
      if (rows.length > 0) onNotice(body, isOperators(budget));
    }
    if (noted.size < NOTED_MAX || before)
      noted.set(id, { limit, percents: [...known, ...due], until: end + (DAYS + 1) * DAY_MS });
  };

  /**
   * Checks the periods that contain the time `at`. With `past`, only periods that end within a day after `at` and not
   * after `past`.
   */
  const poll = async (at: number, past?: number): Promise<void> => {
    const noteOne = async (budget: WatchedBudget): Promise<void> => {
      const end = budget.limitReset === null ? Infinity : periodAt(budget.limitReset, at).end;
      if (past === undefined || (end <= past && end - at <= DAY_MS)) await note(budget, at, end);
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
      for (const row of rows) await noteOne(keyBudget(row, at));
      hash = rows.at(-1)?.['hash'] as string;
    }
  };

  /** Checks periods that ended longer ago, in which late charges may still count. */
  const pollPast = async (at: number): Promise<void> => {
    const past = at - PERIOD_GRACE_MS;
    const older = PAST_DAYS + 1 + (turn++ % (DAYS - PAST_DAYS));
    for (const days of [1, PAST_DAYS, older]) await poll(past - days * DAY_MS, past);
    for (const [id, { until }] of noted) if (until < at) noted.delete(id);
  };

  return async () => {
    const at = now();
    if (Math.abs(at - lookedAtPast) >= PAST_EVERY_MS) {
      await pollPast(at);
      lookedAtPast = at;
    }
    const before = at - PERIOD_GRACE_MS;
    if (periodNames(before).join() !== periodNames(at).join()) await poll(before);
    await poll(at);
  };
}
