import { loadStatements, type Query } from '#store';
import type { DayRange } from './call-facts.ts';
import { findState } from './roll-up-state.ts';

/** The fields by which an account's rows can be grouped. `model` is the service, of any primitive. */
export const USAGE_GROUPS = ['day', 'model', 'key', 'provider', 'primitive'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export interface UsageQuery {
  readonly account: string;
  readonly range: DayRange;
  readonly groups: readonly UsageGroup[];
  /** Filters. A missing filter accepts all rows. */
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly provider?: string | undefined;
  readonly primitive?: string | undefined;
}

/** Sums of an account's calls. `charged` is micro-USD. */
export interface UsageSums {
  readonly requests: number;
  readonly failed: number;
  readonly charged: bigint;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly cached: number;
  readonly images: number;
  readonly seconds: number;
}

/** Fields that the question doesn't group by are 0 or empty. So are fields that a call did not have. */
export interface UsageRow extends UsageSums {
  /** Days since 1970-01-01. */
  readonly day: number;
  readonly model: string;
  readonly key: string;
  readonly provider: string;
  readonly primitive: string;
}

const SQL = loadStatements(import.meta.url, './sql/figures.sql', ['ownUsage']);

/** The most rows of one answer. */
export const USAGE_ROWS_MAX = 50_000;

/**
 * Reads the sums of an account's calls, by day and then by cost, the highest first. Returns null if there are more than
 * USAGE_ROWS_MAX rows.
 */
export async function findUsage(
  query: Query,
  { account, range, groups, model = '', key = '', provider = '', primitive = '' }: UsageQuery,
): Promise<{ readonly rows: readonly UsageRow[]; readonly asOf: number } | null> {
  const apart = USAGE_GROUPS.map((group) => (groups.includes(group) ? 1 : 0));
  const filters = [model, key, provider, primitive];
  const usage = await query(SQL.ownUsage, [account, range.first, range.last, ...filters, ...apart, USAGE_ROWS_MAX + 1]);
  if (usage.length > USAGE_ROWS_MAX) return null;
  const rows = usage.map((row) => ({
    day: Number(row['day']),
    model: row['service'] as string,
    key: row['key'] as string,
    provider: row['provider'] as string,
    primitive: row['primitive'] as string,
    requests: Number(row['requests']),
    failed: Number(row['failed']),
    charged: row['charged'] as bigint,
    prompt: Number(row['prompt']),
    completion: Number(row['completion']),
    reasoning: Number(row['reasoning']),
    cached: Number(row['cached']),
    images: Number(row['images']),
    seconds: Number(row['seconds']),
  }));
  rows.sort((a, b) => a.day - b.day || Number(b.charged - a.charged) || b.requests - a.requests || byName(a, b));
  return { rows, asOf: (await findState(query)).asOf };
}

const nameOf = ({ model, key, provider, primitive }: UsageRow): string => [model, key, provider, primitive].join('\n');
const byName = (a: UsageRow, b: UsageRow): number => (nameOf(a) < nameOf(b) ? -1 : 1);
