import { dateRangeSchema } from '../day-range.ts';
import { toUsdNumber, type MicroUsd } from '#billing';
import { PRIMITIVES } from '#config';
import { dateOf, type DayRange, type ListingSums, type MarketFigures, type MarketSums } from '#analytics';
import { objectOf, titled } from '../answer-schemas.ts';

/** The number of services with their own figures. All other services share one sum. */
const TOP = 20;

const count = (description: string) => ({ type: 'integer', description });
const microUsd = { type: 'integer', description: 'Micro-USD.' };
const usd = { type: 'number', description: 'USD.' };
const series = (description: string) => ({
  type: 'array',
  description,
  items: titled(
    'DayFigure',
    objectOf(
      {
        date: { type: 'string' },
        value: { type: 'integer' },
        suppressed: { type: 'boolean', description: 'true for a day that the operator does not show; else absent.' },
      },
      ['suppressed'],
    ),
  ),
});
const ofListings = { requests: count('Settled calls.'), volume: microUsd, volume_usd: usd, tokens: count('Tokens.') };

/** Schema of a time or null. */
export const asOfSchema = {
  type: ['string', 'null'],
  description: 'When the newest call that is counted was settled or failed; null before the first.',
};

export const marketSchema = objectOf({
  total_requests: count('Settled calls.'),
  total_volume: microUsd,
  total_volume_usd: usd,
  total_active_providers: count('Providers with a settled call.'),
  total_active_services: count('Services with a settled call.'),
  total_active_users: count('Accounts with a settled call.'),
  registered_users: count('Accounts that are known at the end of the range.'),
  wallet_users: count('Those of them that are wallets.'),
  total_tokens: count('Prompt and completion tokens.'),
  total_prompt_tokens: count('Prompt tokens.'),
  total_completion_tokens: count('Completion tokens.'),
  total_reasoning_tokens: count('Completion tokens that were reasoning.'),
  requests_over_time: series('Settled calls by UTC day.'),
  volume_over_time: series('Micro-USD charged by UTC day.'),
  providers_over_time: series('Active providers by UTC day.'),
  users_over_time: series('Active users by UTC day.'),
  date_range: dateRangeSchema,
  total_failed: count('Calls that were not charged because they failed.'),
  total_cached_tokens: count('Prompt tokens that providers had cached.'),
  by_primitive: {
    type: 'array',
    items: objectOf({ primitive: { type: 'string' }, failed: count('Failed calls.'), ...ofListings }),
  },
  top_services: {
    type: 'array',
    maxItems: TOP,
    items: objectOf({ primitive: { type: 'string' }, service: { type: 'string' }, ...ofListings }),
  },
  other_services: objectOf({ services: count('Services that are not in `top_services`.'), ...ofListings }),
  as_of: asOfSchema,
});

/** The market in the form of `GET /analytics/public`. */
export function viewMarket(figures: MarketFigures, { first, last }: DayRange) {
  const { totals, days, listings } = figures;
  const over = (value: (day: MarketFigures['days'][number]) => number) =>
    days.map((day) => ({
      date: dateOf(day.day),
      value: value(day),
      ...(day.isHidden ? { suppressed: true } : {}),
    }));
  return {
    total_requests: totals.requests,
    ...viewTotal(totals.charged),
    total_active_providers: figures.activeProviders,
    total_active_services: listings.length,
    total_active_users: figures.activeUsers,
    registered_users: figures.knownUsers,
    wallet_users: figures.knownWallets,
    total_tokens: totals.prompt + totals.completion,
    total_prompt_tokens: totals.prompt,
    total_completion_tokens: totals.completion,
    total_reasoning_tokens: totals.reasoning,
    requests_over_time: over(({ requests }) => requests),
    volume_over_time: over(({ charged }) => Number(charged)),
    providers_over_time: over(({ providers }) => providers),
    users_over_time: over(({ users }) => users),
    date_range: viewRange({ first, last }),
    total_failed: totals.failed,
    total_cached_tokens: totals.cached,
    by_primitive: PRIMITIVES.map((primitive) => viewPrimitive(primitive, figures.byPrimitive.get(primitive))),
    top_services: listings.slice(0, TOP).map((each) => ({
      primitive: each.primitive,
      service: each.service,
      ...viewUse([each]),
    })),
    other_services: { services: Math.max(0, listings.length - TOP), ...viewUse(listings.slice(TOP)) },
    as_of: viewAsOf(figures.asOf),
  };
}

export const viewRange = ({ first, last }: DayRange) => ({ start_date: dateOf(first), end_date: dateOf(last) });
export const viewAsOf = (at: number): string | null => (at === 0 ? null : new Date(at).toISOString());
export const viewVolume = (charged: MicroUsd) => ({ volume: Number(charged), volume_usd: toUsdNumber(charged) });

const viewTotal = (charged: MicroUsd) => ({ total_volume: Number(charged), total_volume_usd: toUsdNumber(charged) });

function viewPrimitive(primitive: string, sums: MarketSums | undefined) {
  const { requests = 0, failed = 0, charged = 0n, prompt = 0, completion = 0 } = sums ?? {};
  return { primitive, requests, failed, ...viewVolume(charged), tokens: prompt + completion };
}

function viewUse(listings: readonly ListingSums[]) {
  let requests = 0;
  let charged = 0n;
  let tokens = 0;
  for (const each of listings) {
    requests += each.requests;
    charged += each.charged;
    tokens += each.tokens;
  }
  return { requests, ...viewVolume(charged), tokens };
}
