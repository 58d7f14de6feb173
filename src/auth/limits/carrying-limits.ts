import type { Row } from '#store';
import { LIMIT_RESETS, type LimitReset } from '../accounts/spend-period.ts';
import { budgetName, ownerOfLimits, type LimitsSubject } from './account-limits.ts';
import type { CarryingLimit } from './carried-sums.ts';

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
    of: isMember ? 'member' : 'account',
    name: budgetName(account, subject),
    member: isMember ? subject : null,
    limitReset,
    countedSince: timeOf(row, TIMES[limitReset ?? 'ever']),
  };
}

/** The limit of a key. `row` has the columns of `api_keys`. */
export function carryingKey(row: Row): CarryingLimit {
  return {
    account: row['account'] as string,
    of: 'key',
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
