import { loadStatements, type Database, type Row } from '#store';
import { type MicroUsd, formatUsd } from '#billing/amounts';
import {
  createCarriedSums,
  budgetsFromText,
  carryingBudget,
  carryingKey,
  type CarryingLimit,
  ownerOfLimits,
} from '#accounts';
import type { LimitSetter } from '#auth';
import { periodAt, budgetPeriod, LIMIT_RESETS, type LimitReset, periodName } from '#accounts/names';

interface BudgetPollsOptions {
  readonly database: Pick<Database, 'query' | 'snapshot' | 'engine'>;
  readonly now: () => number;
  /** Called for each notice, on one gateway of the database. `isOperators`: the operator set the limit. */
  readonly onNotice: (body: Readonly<Record<string, unknown>>, isOperators: boolean) => void;
}

const SQL = loadStatements(import.meta.url, './sql/notices.sql', [
  'watchedLimits',
  'watchedKeys',
  'note',
  'dropOldNotices',
]);

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
    const carried = await sums.useOf(counted.carrying, period);
    // The next check reads it again.
    if (carried?.unsummed !== undefined) return;
    const budget = carried === null ? counted : { ...counted, spent: counted.spent + carried.spent };
    const before = noted.get(id);
    const known = before?.limit === limit ? before.percents : [];
    const due = reached(budget).filter((percent) => !known.includes(percent));
    if (due.length === 0) return;
    for (const percent of due) {
      const at = now();
      const body = noticeBody(budget, percent, at);
      const rows = await database.query(SQL.note, [id, limit, percent, account, at, JSON.stringify(body), at]);
      if (rows.length === 0) continue;
      await database.query(SQL.dropOldNotices, [id]);
      onNotice(body, isOperators(budget));
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
      rows = await database.query(SQL.watchedLimits, [...periods, account, subject, PAGE]);
      for (const row of rows) for (const budget of limitBudgets(row, at)) await noteOne(budget);
      [account, subject] = [rows.at(-1)?.['account'] as string, rows.at(-1)?.['subject'] as string];
    }
    let hash = '';
    for (let rows: readonly Row[] = [], first = true; first || rows.length === PAGE; first = false) {
      rows = await database.query(SQL.watchedKeys, [...periods, hash, PAGE]);
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

interface WatchedBudget {
  /** The budget's id in the ledger. */
  readonly id: string;
  readonly account: string;
  readonly scope: 'key' | 'member' | 'account' | 'operator';
  /** The key, as notices show it; null for other budgets. */
  readonly key: {
    readonly hash: string;
    readonly name: string;
    readonly limit_set_by: LimitSetter | null;
  } | null;
  /** The id of the member; null for other budgets. */
  readonly member: string | null;
  readonly limit: MicroUsd;
  readonly limitReset: LimitReset | null;
  readonly limitSoft: boolean;
  readonly notify: readonly number[];
  /** Spent by the ledger's counter. */
  readonly spent: MicroUsd;
  /** Identifies spending that is not in the counter. */
  readonly carrying: CarryingLimit;
  /** When the limit and its percentages were last changed, in epoch milliseconds. */
  readonly since: number;
}

/** The names of the daily, weekly and monthly period of a time. Budget ids end with them. */
const periodNames = (at: number): readonly string[] =>
  LIMIT_RESETS.map((reset) => periodName(reset, periodAt(reset, at).start));

/** The budget of a row of the statement watchedKeys, which was queried for the periods of the time `at`. */
function keyBudget(row: Row, at: number): WatchedBudget {
  const carrying = carryingKey(row);
  const { account, name, limitReset } = carrying;
  return {
    id: budgetPeriod(name, limitReset, at).id,
    account,
    scope: 'key',
    key: { hash: name, name: row['label'] as string, limit_set_by: row['limit_by'] as LimitSetter | null },
    member: null,
    limit: row['spend_limit'] as bigint,
    limitReset,
    limitSoft: row['limit_soft'] === 1n,
    notify: JSON.parse(row['limit_notify'] as string) as number[],
    spent: (row['spent'] ?? 0n) as bigint,
    carrying,
    since: Number(row['since']),
  };
}

/** The budgets of a row of the statement watchedLimits, which was queried for the periods of the time `at`. */
function limitBudgets(row: Row, at: number): readonly WatchedBudget[] {
  const [account, subject] = [row['account'] as string, row['subject'] as string];
  const scope = ownerOfLimits(subject);
  const member = scope === 'member' ? subject : null;
  const since = Number(row['since']);
  return budgetsFromText(row['rules'] as string).map((rule) => {
    const spent = (row[rule.limitReset ?? 'ever'] ?? 0n) as bigint;
    const carrying = carryingBudget(account, subject, rule.limitReset, row);
    const { id } = budgetPeriod(carrying.name, rule.limitReset, at);
    return { ...rule, id, account, scope, member, key: null, spent, carrying, since };
  });
}

const isOperators = ({ scope, key }: WatchedBudget): boolean =>
  scope === 'operator' || key?.limit_set_by === 'operator';

/** The watched percentages that are reached. Without any spending none is reached, also for a limit of 0. */
const reached = ({ notify, spent, limit }: WatchedBudget): readonly number[] =>
  notify.filter((percent) => spent > 0n && spent * 100n >= limit * BigInt(percent));

/** The JSON body of a notice. Its names are those of the API. */
function noticeBody(budget: WatchedBudget, percent: number, at: number): Readonly<Record<string, unknown>> {
  const { account, scope, key, member, limit, limitReset, limitSoft, spent } = budget;
  return {
    event: 'budget.reached',
    time: new Date(at).toISOString(),
    account,
    of: scope,
    ...(key === null ? {} : { key }),
    ...(member === null ? {} : { member }),
    percent,
    limit_usd: formatUsd(limit),
    spent_usd: formatUsd(spent),
    limit_reset: limitReset,
    limit_soft: limitSoft,
  };
}
