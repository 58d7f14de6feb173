import { toUsdNumber, type MicroUsd, type Price, ratesFromJson, ratesToUsd } from '#billing';
import { PRIMITIVES, type Primitive } from '#config';
import {
  dateOf,
  type DayRange,
  type ListingSums,
  type MarketFigures,
  type MarketSums,
  type findListings,
  type ListingFigures,
  type ListingProvider,
} from '#analytics';
import type { Offer } from '#catalog';
import { dateRangeSchema } from '../day-range.ts';
import { objectOf, titled, dataOf } from '../route-schemas.ts';

/** The number of services with their own figures. All other services share one sum. */
const TOP = 20;

const counted = (description: string) => ({ type: 'integer', description });
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
const ofListings = {
  requests: counted('Settled calls.'),
  volume: microUsd,
  volume_usd: usd,
  tokens: counted('Tokens.'),
};

export const asOfSchema = {
  type: ['string', 'null'],
  description: 'When the newest call that is counted was settled or failed; null before the first.',
};

export const marketSchema = objectOf({
  total_requests: counted('Settled calls.'),
  total_volume: microUsd,
  total_volume_usd: usd,
  total_active_providers: counted('Providers with a settled call.'),
  total_active_services: counted('Services with a settled call.'),
  total_active_users: counted('Accounts with a settled call.'),
  registered_users: counted('Accounts that are known at the end of the range.'),
  wallet_users: counted('Those of them that are wallets.'),
  total_tokens: counted('Prompt and completion tokens.'),
  total_prompt_tokens: counted('Prompt tokens.'),
  total_completion_tokens: counted('Completion tokens.'),
  total_reasoning_tokens: counted('Completion tokens that were reasoning.'),
  requests_over_time: series('Settled calls by UTC day.'),
  volume_over_time: series('Micro-USD charged by UTC day.'),
  providers_over_time: series('Active providers by UTC day.'),
  users_over_time: series('Active users by UTC day.'),
  date_range: dateRangeSchema,
  total_failed: counted('Calls that were not charged because they failed.'),
  total_cached_tokens: counted('Prompt tokens that providers had cached.'),
  by_primitive: {
    type: 'array',
    items: objectOf({
      primitive: { type: 'string', enum: PRIMITIVES },
      failed: counted('Failed calls.'),
      ...ofListings,
    }),
  },
  top_services: {
    type: 'array',
    maxItems: TOP,
    items: objectOf({ primitive: { type: 'string', enum: PRIMITIVES }, service: { type: 'string' }, ...ofListings }),
  },
  other_services: objectOf({ services: counted('Services that are not in `top_services`.'), ...ofListings }),
  as_of: asOfSchema,
});

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
const viewVolume = (charged: MicroUsd) => ({ volume: Number(charged), volume_usd: toUsdNumber(charged) });

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

const count = { type: 'integer' };
const suppressed = { type: 'boolean', description: 'true for a day that the operator does not show; else absent.' };
const uptime = { type: ['number', 'null'], description: '1 − failures / attempts; null without attempts.' };
const quantiles = {
  type: ['object', 'null'],
  description: 'Milliseconds, within 10 %; null without a timed call.',
  required: ['p50', 'p95'],
  properties: { p50: count, p95: count },
};
const volume = { volume: { ...count, description: 'Micro-USD.' }, volume_usd: { type: 'number' } };

export const listingSchema = dataOf(
  objectOf({
    primitive: { type: 'string', enum: PRIMITIVES },
    service: { type: 'string' },
    date_range: dateRangeSchema,
    requests: { ...count, description: 'Settled calls.' },
    failed: { ...count, description: 'Calls that were not charged because they failed.' },
    ...volume,
    tokens: count,
    prompt_tokens: count,
    completion_tokens: count,
    reasoning_tokens: count,
    cached_tokens: count,
    images: { ...count, description: 'Images that were made.' },
    seconds: { ...count, description: 'Seconds of video, or of work that is charged by seconds.' },
    by_day: {
      type: 'array',
      items: objectOf(
        { date: { type: 'string' }, requests: count, failed: count, volume: count, tokens: count, suppressed },
        ['suppressed'],
      ),
    },
    providers: {
      type: 'array',
      items: objectOf({
        provider: { type: 'string', description: 'Public key' },
        name: { type: ['string', 'null'], description: 'null for a provider that no longer offers it.' },
        requests: count,
        ...volume,
        tokens: count,
        attempts: { ...count, description: 'Includes attempts after which another provider succeeded.' },
        failures: { ...count, description: 'Attempts that failed because of the provider.' },
        uptime,
        first_byte_ms: quantiles,
        duration_ms: quantiles,
        throughput: { type: ['number', 'null'], description: 'Completion tokens a second; null for other primitives.' },
        by_day: {
          type: 'array',
          items: objectOf(
            { date: { type: 'string' }, requests: count, attempts: count, failures: count, uptime, suppressed },
            ['suppressed'],
          ),
        },
        prices: {
          type: 'array',
          items: objectOf({
            from: { type: 'string', description: 'When it was first offered.' },
            pricing: { type: 'object', additionalProperties: { type: 'number' }, description: 'USD by meter.' },
            current: { type: 'boolean' },
            of: { type: ['string', 'null'], description: 'The tool, tier or resolution that it is for.' },
          }),
        },
      }),
    },
    as_of: asOfSchema,
  }),
);

export const listingsSchema = objectOf({
  data: {
    type: 'array',
    items: objectOf({
      primitive: { type: 'string', enum: PRIMITIVES },
      service: { type: 'string' },
      requests: { ...count, description: 'Settled calls.' },
      ...volume,
      tokens: count,
      attempts: { ...count, description: 'Attempts at its providers.' },
      failures: { ...count, description: 'Attempts that failed because of the provider.' },
      uptime,
    }),
  },
  date_range: dateRangeSchema,
  as_of: asOfSchema,
});

export const viewListings = ({ listings, asOf }: Awaited<ReturnType<typeof findListings>>, range: DayRange) => ({
  data: listings.map((each) => ({
    primitive: each.primitive,
    service: each.service,
    requests: each.requests,
    ...viewVolume(each.charged),
    tokens: each.tokens,
    ...viewAttempts(each),
  })),
  date_range: viewRange(range),
  as_of: viewAsOf(asOf),
});

/** A service in the form of `GET /analytics/service/…`. `offers` are all offers of this name, of any primitive. */
export function viewListing(
  figures: ListingFigures,
  { primitive, service, range }: { primitive: Primitive; service: string; range: DayRange },
  offers: readonly Offer[],
) {
  const { totals, days } = figures;
  return {
    data: {
      primitive,
      service,
      date_range: viewRange(range),
      requests: totals.requests,
      failed: totals.failed,
      ...viewVolume(totals.charged),
      tokens: totals.prompt + totals.completion,
      prompt_tokens: totals.prompt,
      completion_tokens: totals.completion,
      reasoning_tokens: totals.reasoning,
      cached_tokens: totals.cached,
      images: totals.images,
      seconds: totals.seconds,
      by_day: days.map((day) => ({
        date: dateOf(day.day),
        requests: day.requests,
        failed: day.failed,
        volume: Number(day.charged),
        tokens: day.prompt + day.completion,
        ...hiddenOf(day),
      })),
      providers: figures.providers.map((each) =>
        viewProvider(
          each,
          primitive,
          offers.filter(({ provider }) => provider.id === each.id),
        ),
      ),
      as_of: viewAsOf(figures.asOf),
    },
  };
}

const hiddenOf = ({ isHidden }: { readonly isHidden: boolean }) => (isHidden ? { suppressed: true } : {});

function viewProvider(figures: ListingProvider, primitive: Primitive, offers: readonly Offer[]) {
  const { totals, attempts } = figures;
  return {
    provider: figures.id,
    name: offers[0]?.provider.name ?? null,
    requests: totals.requests,
    ...viewVolume(totals.charged),
    tokens: totals.prompt + totals.completion,
    ...viewAttempts(attempts),
    first_byte_ms: figures.firstByteMs,
    duration_ms: figures.durationMs,
    throughput: primitive === 'model' && figures.throughput !== null ? rounded(figures.throughput, 10) : null,
    by_day: figures.days.map((day) => ({
      date: dateOf(day.day),
      requests: day.requests,
      ...viewAttempts(day),
      ...hiddenOf(day),
    })),
    prices: viewPrices(figures.prices, primitive, offers),
  };
}

function viewAttempts({ successes, failures }: ListingProvider['attempts']) {
  const attempts = successes + failures;
  return { attempts, failures, uptime: attempts === 0 ? null : rounded(1 - failures / attempts, 10_000) };
}

/** Prices are stored by provider and name. So prices of the provider's other primitives of this name are removed. */
function viewPrices(prices: ListingProvider['prices'], primitive: Primitive, offers: readonly Offer[]) {
  const byName = new Map<string, string | null>();
  const others = new Set<string>();
  for (const { primitive: other, price, variants } of offers) {
    const parts: readonly (readonly [string | null, Price])[] = [...Object.entries(variants), [null, price]];
    for (const [name, { id }] of parts) {
      if (other === primitive) byName.set(id, name);
      else others.add(id);
    }
  }
  return prices
    .filter(({ id }) => byName.has(id) || !others.has(id))
    .map(({ id, rates, from }) => ({
      from: new Date(from).toISOString(),
      pricing: ratesToUsd(ratesFromJson(JSON.parse(rates) as Record<string, string>)),
      current: byName.has(id),
      of: byName.get(id) ?? null,
    }));
}

const rounded = (value: number, parts: number): number => Math.round(value * parts) / parts;
