import { formatUsd, type MicroUsd } from '#billing';
import {
  budgetsFromText,
  carryingBudget,
  carryingKey,
  type CarryingLimit,
  type LimitSetter,
  ownerOfLimits,
} from '#auth';
import { budgetPeriod, LIMIT_RESETS, type LimitReset, periodAt, periodName } from '#auth/accounts';
import type { Row } from '#store';

/** A watched budget, with what was spent of it. */
export interface WatchedBudget {
  /** The budget's id in the ledger. */
  readonly id: string;
  readonly account: string;
  readonly of: 'key' | 'member' | 'account' | 'operator';
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
export const periodNames = (at: number): readonly string[] =>
  LIMIT_RESETS.map((reset) => periodName(reset, periodAt(reset, at).start));

/** The budget of a row of watched-keys.sql, which was queried for the periods of the time `at`. */
export function keyBudget(row: Row, at: number): WatchedBudget {
  const carrying = carryingKey(row);
  const { account, name, limitReset } = carrying;
  return {
    id: budgetPeriod(name, limitReset, at).id,
    account,
    of: 'key',
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

/** The budgets of a row of watched-limits.sql, which was queried for the periods of the time `at`. */
export function limitBudgets(row: Row, at: number): readonly WatchedBudget[] {
  const [account, subject] = [row['account'] as string, row['subject'] as string];
  const of = ownerOfLimits(subject);
  const member = of === 'member' ? subject : null;
  const since = Number(row['since']);
  return budgetsFromText(row['rules'] as string).map((rule) => {
    const spent = (row[rule.limitReset ?? 'ever'] ?? 0n) as bigint;
    const carrying = carryingBudget(account, subject, rule.limitReset, row);
    const { id } = budgetPeriod(carrying.name, rule.limitReset, at);
    return { ...rule, id, account, of, member, key: null, spent, carrying, since };
  });
}

/** True if the operator set the limit. */
export const isOperators = ({ of, key }: WatchedBudget): boolean =>
  of === 'operator' || key?.limit_set_by === 'operator';

/** The watched percentages that are reached. Without any spending none is reached, also for a limit of 0. */
export const reached = ({ notify, spent, limit }: WatchedBudget): readonly number[] =>
  notify.filter((percent) => spent > 0n && spent * 100n >= limit * BigInt(percent));

/** The JSON body of a notice. Its names are those of the API. */
export function noticeBody(budget: WatchedBudget, percent: number, at: number): Readonly<Record<string, unknown>> {
  const { account, of, key, member, limit, limitReset, limitSoft, spent } = budget;
  return {
    event: 'budget.reached',
    time: new Date(at).toISOString(),
    account,
    of,
    ...(key === null ? {} : { key }),
    ...(member === null ? {} : { member }),
    percent,
    limit_usd: formatUsd(limit),
    spent_usd: formatUsd(spent),
    limit_reset: limitReset,
    limit_soft: limitSoft,
  };
}
