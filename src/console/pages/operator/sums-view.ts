import {
  boundsOf,
  CONSOLE_RANGES,
  type ConsoleRange,
  type ConsoleSums,
  marginOf,
  NO_CALLS,
  type OfferSums,
  plus,
} from '#analytics';
import { micro } from '../account/generation-view.ts';
import { objectOf, titled } from '../route-schemas.ts';

/* Sums of calls as all pages of the operator show them. */

const count = { type: 'integer' } as const;

export const rangeQuerySchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    range: {
      type: 'string',
      enum: Object.keys(CONSOLE_RANGES),
      default: '24h',
      description: 'The last 24 hours with the running one; or 7 or 30 days of UTC with today.',
    },
  },
} as const;

export interface RangeQuery {
  readonly range: ConsoleRange;
}

export const sumsProperties = {
  requests: { ...count, description: 'Calls that were served.' },
  failed: { ...count, description: 'Calls that failed: they are over, and nothing was served or charged.' },
  tokens: { ...count, description: 'Of prompts and completions.' },
  charged_micro_usdc: { ...micro, description: 'Micro-USD that consumers were charged.' },
  fee_micro_usdc: { ...micro, description: "Micro-USD: the operator's fee, a part of it." },
  cost_micro_usd: {
    ...micro,
    description: 'Micro-USD that the operator pays vendors, for the calls whose offer has a `cost`.',
  },
  margin_micro_usd: {
    ...micro,
    description:
      'Micro-USD that the operator earned: the fees, and of own offers with a `cost` what was charged beyond it. Negative if the vendor costs more.',
  },
} as const;

export const sumsSchema = titled(
  'CallSums',
  objectOf({
    ...sumsProperties,
    providers_micro_usdc: {
      ...micro,
      description: "Micro-USD that providers earned which are not the operator's.",
    },
    unknown_cost_requests: { ...count, description: 'Served calls of own offers without a `cost`.' },
    unknown_cost_micro_usdc: {
      ...micro,
      description:
        'Micro-USD that these calls were charged, without the fee. It is not in the margin: `charged_micro_usdc` is the sum of `providers_micro_usdc`, this, `cost_micro_usd` and `margin_micro_usd`.',
    },
  }),
);

/** Sums, and whose the charges are that have no part in the margin. */
export interface SumsWithOwn extends ConsoleSums {
  /** Earnings of providers that are not the operator's own. */
  readonly providers: bigint;
  /** Charges of own offers whose cost is unknown, without the fee, and their calls. */
  readonly unknownCost: bigint;
  readonly unknownCalls: number;
}

export const withOwn = (rows: readonly OfferSums[], own: ReadonlySet<string>): readonly (OfferSums & SumsWithOwn)[] =>
  rows.map((row) => {
    const isOwn = own.has(row.provider);
    const rest = row.charged - row.fee - row.costBase;
    return {
      ...row,
      providers: isOwn ? 0n : rest,
      unknownCost: isOwn ? rest : 0n,
      unknownCalls: isOwn ? row.uncosted : 0,
    };
  });

export const NO_SUMS: SumsWithOwn = { ...NO_CALLS, providers: 0n, unknownCost: 0n, unknownCalls: 0 };
export const addSums = (one: SumsWithOwn, other: SumsWithOwn): SumsWithOwn => ({
  ...plus(one, other),
  providers: one.providers + other.providers,
  unknownCost: one.unknownCost + other.unknownCost,
  unknownCalls: one.unknownCalls + other.unknownCalls,
});

export const viewSumsWithOwn = (sums: SumsWithOwn) => ({
  ...viewConsoleSums(sums),
  providers_micro_usdc: Number(sums.providers),
  unknown_cost_requests: sums.unknownCalls,
  unknown_cost_micro_usdc: Number(sums.unknownCost),
});

export const viewConsoleSums = (sums: ConsoleSums) => ({
  requests: sums.requests,
  failed: sums.failed,
  tokens: sums.tokens,
  charged_micro_usdc: Number(sums.charged),
  fee_micro_usdc: Number(sums.fee),
  cost_micro_usd: Number(sums.cost),
  margin_micro_usd: Number(marginOf(sums)),
});

export const failuresSchema = {
  type: 'array',
  description: 'Failed calls by their cause, the most frequent first.',
  items: titled(
    'FailuresByCause',
    objectOf({
      cause: {
        type: 'string',
        description:
          'The `error_code` of these calls; `expired` (the lock timed out), `empty_answer` (nothing arrived), or `unknown`.',
      },
      failed: count,
    }),
  ),
} as const;

export function viewFailures(rows: readonly OfferSums[]) {
  const sums = new Map<string, number>();
  for (const { cause, failed } of rows) if (failed > 0) sums.set(cause, (sums.get(cause) ?? 0) + failed);
  return [...sums].map(([cause, failed]) => ({ cause, failed })).sort((a, b) => b.failed - a.failed);
}

/** The sums of all rows, of each group: the groups with the most money first, then those with the most calls. */
export function groupSums<T extends string>(
  rows: readonly (OfferSums & SumsWithOwn)[],
  keyOf: (row: OfferSums) => T,
): readonly (readonly [T, SumsWithOwn])[] {
  const sums = new Map<T, SumsWithOwn>();
  for (const row of rows) sums.set(keyOf(row), addSums(sums.get(keyOf(row)) ?? NO_SUMS, row));
  const callsOf = ({ requests, failed }: ConsoleSums) => requests + failed;
  return [...sums].sort(([, a], [, b]) => Number(b.charged - a.charged) || callsOf(b) - callsOf(a));
}

export const rangeProperties = {
  range: { type: 'string', enum: Object.keys(CONSOLE_RANGES) },
  from: { type: 'string', description: 'The beginning of the range.' },
  as_of: {
    type: ['string', 'null'],
    description: 'When the newest call that is counted was settled or failed; null before the first.',
  },
} as const;

export const viewConsoleRange = (
  range: ConsoleRange,
  { now, asOf }: { readonly now: number; readonly asOf: number },
) => ({
  range,
  from: new Date(boundsOf(range, now).fromMs).toISOString(),
  as_of: asOf === 0 ? null : new Date(asOf).toISOString(),
});
