import { calcPrice, type ModelInfo, type ModelPrice, type Provider, type TieredPrices } from '@pydantic/genai-prices';
import { formatUsd } from '#billing/amounts';
import type { Fraction, KnownTier } from '#config/known-providers';
import { type Product, productOf } from './model-facts.ts';
import { isCloseMatch } from './price-match.ts';

/* List prices of models, from the package @pydantic/genai-prices, as `pricing` of a block. */

/** The version of the package. A test compares it with the installed one. */
export const PRICES_VERSION = '0.1.8';
/** The day on which this version of the package was published: its prices are at least this old. */
export const PRICES_DATE = '2026-09-23';

/** Prices by the keys of `[models.pricing]`, as decimal USD. */
export type Pricing = Readonly<Record<string, string | readonly Readonly<Record<string, string | number>>[]>>;

export type ListPrice =
  | {
      readonly kind: 'priced';
      readonly pricing: Pricing;
      readonly pricedAs: string;
      readonly contextLength: number | null;
      readonly makes: Product;
    }
  | { readonly kind: 'unpriced'; readonly why: string };

/** Rates of one entry of the list, as micro-USD for 1M tokens, or for a million searches. */
type ListRates = Readonly<Record<string, bigint>>;

/** A price: the rates of short prompts, and those of prompts above a number of tokens, rising. */
interface Rated {
  readonly base: ListRates;
  readonly tiers: readonly { readonly above: number; readonly rates: ListRates }[];
}

const DAY_MS = 24 * 3_600_000;

/** The keys of `pricing` for the units of the list. */
const KEYS: Readonly<Record<string, string>> = {
  input_mtok: 'prompt',
  output_mtok: 'completion',
  cache_read_mtok: 'input_cache_read',
  cache_write_mtok: 'input_cache_write',
  cache_write_1h_mtok: 'input_cache_write_1h',
  input_audio_mtok: 'audio',
  cache_audio_read_mtok: 'input_audio_cache',
  output_audio_mtok: 'audio_output',
  output_reasoning_mtok: 'internal_reasoning',
  output_image_mtok: 'image_output',
  web_searches_kcount: 'web_search',
};

/** Units without a price of their own here, and the key of the price that they are charged at. */
const CHARGED_AS: Readonly<Record<string, string>> = {
  input_image_mtok: 'prompt',
  input_video_mtok: 'prompt',
  cache_image_read_mtok: 'input_cache_read',
  output_video_mtok: 'completion',
};

/** Units that no call has: the gateway refuses requests that name files which are stored at a provider. */
const NEVER_USED: ReadonlySet<string> = new Set(['storage_searches_kcount']);

/** The key whose price a key has that a model does not price. */
const PARENTS: Readonly<Record<string, string>> = {
  input_cache_read: 'prompt',
  input_cache_write: 'prompt',
  input_cache_write_1h: 'input_cache_write',
  audio: 'prompt',
  input_audio_cache: 'audio',
  internal_reasoning: 'completion',
  audio_output: 'completion',
  image_output: 'completion',
};

const WORDS: Readonly<Record<string, string>> = {
  requests_kcount: 'each request',
  input_image_mtok: 'pictures at another price than text',
  input_video_mtok: 'video at another price than text',
  cache_image_read_mtok: 'pictures in a cache at another price than text',
  audio_hours: 'time of sound',
  input_audio_hours: 'time of sound',
  input_document_kpages: 'pages of documents',
  input_annotated_document_kpages: 'pages of documents',
  output_citation_mtok: 'citations',
};

/**
 * The list price of a model of `provider` (its id in the list, or an entry of its own), with a markup in hundredths of
 * a percent. Each rate is rounded up. A price that depends on the hour, or that begins within a day, is the dearest of
 * those that can apply: a call costs the price that it locked, whenever it is served. `searches`: see KnownProvider.
 */
export function listPrice(
  provider: string | Provider,
  model: string,
  {
    now,
    markupBps,
    searches,
  }: { readonly now: number; readonly markupBps: number; readonly searches?: string | undefined },
): ListPrice {
  const entry = entryOf(provider, model);
  if (!entry) return unpriced('the list of prices does not have it');
  if (!isCloseMatch(model, entry))
    return unpriced(`the list of prices has only ${entry.id}, which may have another price: set pricing or priced_as`);
  const entries = entriesAt(entry, now);
  const makes = productOf(model);
  const facts = { kind: 'priced', pricedAs: entry.id, contextLength: entry.context_window ?? null, makes } as const;
  const hours = makes === 'transcription' ? entries.map(({ audio_hours: price }) => price ?? 0).map(highest) : [0];
  if (Math.min(...hours) > 0)
    return {
      ...facts,
      pricing: { prompt: '0', completion: '0', per_minute: perMinute(Math.max(...hours), markupBps) },
    };
  for (const entry of entries) {
    const foreign = unmapped(entry);
    if (foreign !== null) return unpriced(`it charges for ${foreign}, which has no price here`);
  }
  const rated = dearest(entries.map((entry) => ratedOf(entry, markupBps)));
  const { prompt, completion } = rated.base;
  if (prompt === undefined) return unpriced('the list of prices has no price for its tokens');
  if (makes !== 'embeddings' && completion === undefined)
    return unpriced('the list of prices has no price for its completions');
  if (makes === 'embeddings' && (rated.base['audio'] ?? prompt) > prompt)
    return unpriced('it charges for sound at another price than text, which embeddings cannot have');
  if (makes === 'embeddings') return { ...facts, pricing: toPricing({ base: { prompt, completion: 0n }, tiers: [] }) };
  const withSearches =
    makes !== 'text' || searches === undefined || rated.base['web_search'] !== undefined
      ? rated
      : { ...rated, base: { ...rated.base, web_search: rate(Number(searches), 'web_search', markupBps) } };
  return { ...facts, pricing: toPricing(withSearches) };
}

/** The entry of the list for a model. null if it is missing, or contradicts itself. */
function entryOf(provider: string | Provider, model: string): ModelInfo | null {
  try {
    return calcPrice({}, model, typeof provider === 'string' ? { providerId: provider } : { provider })?.model ?? null;
  } catch {
    // One wrong entry must not keep a gateway from starting.
    return null;
  }
}

const unpriced = (why: string): ListPrice => ({ kind: 'unpriced', why });

/** The prices of a model that can apply within a day from now: by its hours, and by the days on which they begin. */
function entriesAt({ prices }: ModelInfo, now: number): readonly ModelPrice[] {
  if (!Array.isArray(prices)) return [prices];
  const entries: ModelPrice[] = [];
  // The last one that applies is in force, as in the package.
  for (const { constraint, prices: entry } of prices.toReversed()) {
    const begins =
      constraint !== undefined && 'start_date' in constraint
        ? Date.parse(constraint.start_date)
        : Number.NEGATIVE_INFINITY;
    if (begins > now + DAY_MS) continue;
    entries.push(entry);
    const isOfHours = constraint !== undefined && !('start_date' in constraint);
    if (!isOfHours && begins <= now) break;
  }
  return entries;
}

/** Words for something that a model charges for and that cannot be charged here. null if there is nothing. */
function unmapped(entry: ModelPrice): string | null {
  for (const [unit, price] of Object.entries(entry)) {
    if (price === undefined || KEYS[unit] !== undefined || NEVER_USED.has(unit) || highest(price) === 0) continue;
    const as = CHARGED_AS[unit];
    if (as !== undefined && highest(price) <= lowest(priceOf(entry, as))) continue;
    return WORDS[unit] ?? unit.replace(/_[a-z]+$/, '').replaceAll('_', ' ');
  }
  return null;
}

/** The price in the list for a key, or for the key whose price it has. */
function priceOf(entry: ModelPrice, key: string): number | TieredPrices {
  const unit = Object.keys(KEYS).find((one) => KEYS[one] === key)!;
  const parent = PARENTS[key];
  return entry[unit] ?? (parent === undefined ? 0 : priceOf(entry, parent));
}

const all = (price: number | TieredPrices): readonly number[] =>
  typeof price === 'number' ? [price] : [price.base, ...price.tiers.map((tier) => tier.price)];
const highest = (price: number | TieredPrices): number => Math.max(...all(price));
const lowest = (price: number | TieredPrices): number => Math.min(...all(price));

function ratedOf(entry: ModelPrice, markupBps: number): Rated {
  const priced = Object.entries(entry).flatMap(([unit, price]) => {
    const key = KEYS[unit];
    return key === undefined || price === undefined ? [] : [[key, price] as const];
  });
  const at = (above: number): ListRates =>
    Object.fromEntries(
      priced.map(([key, price]) => {
        const amount =
          typeof price === 'number'
            ? price
            : // A tier of the list holds above its start, as `above` does.
              (price.tiers.findLast(({ start }) => start <= above)?.price ?? price.base);
        return [key, rate(amount, key, markupBps)];
      }),
    );
  const starts = priced.flatMap(([, price]) =>
    typeof price === 'number' ? [] : price.tiers.map(({ start }) => start),
  );
  const thresholds = [...new Set(starts)].filter((start) => start > 0).sort((a, b) => a - b);
  return { base: at(0), tiers: thresholds.map((above) => ({ above, rates: at(above) })) };
}

/** The dearest of several prices: of each rate the highest, for prompts of any length. */
function dearest(prices: readonly Rated[]): Rated {
  const [only] = prices;
  if (prices.length === 1) return only!;
  const thresholds = [...new Set(prices.flatMap(({ tiers }) => tiers.map(({ above }) => above)))].sort((a, b) => a - b);
  const ratesAt = ({ base, tiers }: Rated, above: number) =>
    tiers.findLast((tier) => tier.above <= above)?.rates ?? base;
  const at = (above: number): ListRates => {
    const rates = prices.map((price) => ratesAt(price, above));
    const keys = new Set(rates.flatMap((one) => Object.keys(one)));
    return Object.fromEntries(
      [...keys].map((key) => [key, rates.map((one) => rateOf(one, key)).reduce((a, b) => (b > a ? b : a))]),
    );
  };
  return { base: at(0), tiers: thresholds.map((above) => ({ above, rates: at(above) })) };
}

function rateOf(rates: ListRates, key: string): bigint {
  const parent = PARENTS[key];
  return rates[key] ?? (parent === undefined ? 0n : rateOf(rates, parent));
}

/** The least rate that a block may have, if it is not 0: USD 0.001. */
const LEAST = 1_000n;

/**
 * A price of the list with its markup, as micro-USD for 1M tokens, or for one search. The double's shortest decimal
 * form is the number that the list has.
 */
export function rate(amount: number, key: string, markupBps: number): bigint {
  const [digits = '0', exponent = '0'] = amount.toExponential().split('e');
  const [whole, part = ''] = digits.split('.');
  const scale = part.length - Number(exponent);
  const divisor = 10_000n * (UNITS[key] ?? 1n) * 10n ** BigInt(Math.max(scale, 0));
  const value =
    BigInt(`${whole}${part}`) * 10n ** BigInt(Math.max(-scale, 0)) * 1_000_000n * (10_000n + BigInt(markupBps));
  const up = (value + divisor - 1n) / divisor;
  return UNITS[key] === undefined && up > 0n && up < LEAST ? LEAST : up;
}

/** Prices of the list for several units of the key: for a thousand searches, and for an hour of sound. */
const UNITS: Readonly<Record<string, bigint>> = { web_search: 1_000n, per_minute: 60n };

const perMinute = (ofAnHour: number, markupBps: number): string => formatUsd(rate(ofAnHour, 'per_minute', markupBps));

function toPricing({ base, tiers }: Rated): Pricing {
  const written = (rates: ListRates) =>
    Object.fromEntries(Object.entries(rates).map(([key, one]) => [key, formatUsd(one)]));
  const { web_search: _, ...tokens } = base;
  const lists = tiers.map(({ above, rates: { web_search: _search, ...rates } }) => ({ above, ...written(rates) }));
  return { ...written(tokens), ...written(base), ...(lists.length === 0 ? {} : { tiers: lists }) };
}

/**
 * The dearer of two prices: of each price of the list, and of what the provider itself names in USD for 1M tokens, by
 * the keys of `pricing`.
 */
export function dearer(one: Pricing, prices: Readonly<Record<string, number>>, markupBps: number): Pricing {
  const least = Object.entries(prices).map(([key, amount]) => [key, rate(amount, key, markupBps)] as const);
  const raise = <T extends Readonly<Record<string, unknown>>>(prices: T): T => {
    const raised: Record<string, unknown> = { ...prices };
    for (const [key, bound] of least) {
      const now = priceIn(raised, key);
      if (now !== null && bound > now) raised[key] = formatUsd(bound);
    }
    return raised as T;
  };
  const base = raise(one);
  const { tiers } = one;
  return Array.isArray(tiers) ? { ...base, tiers: tiers.map(raise) } : base;
}

/** Prices of pictures and sound, which no service tier has. */
const NOT_IN_TIERS = ['audio', 'audio_output', 'image_output'];

/**
 * The price of a service tier: that of tokens times a fraction, rounded up, also of those that are written to a cache.
 * null if it has parts that the tier does not have.
 */
export function tierPrice(pricing: Pricing, { times, cachedAsPrompt }: KnownTier): Pricing | null {
  if (NOT_IN_TIERS.some((key) => key in pricing)) return null;
  const part = (prices: Readonly<Record<string, unknown>>) => {
    const { prompt, completion, input_cache_read: cached } = prices;
    const parts = {
      prompt,
      completion,
      input_cache_read: cached !== undefined && cachedAsPrompt === true ? prompt : cached,
      input_cache_write: prices['input_cache_write'],
      input_cache_write_1h: prices['input_cache_write_1h'],
      internal_reasoning: prices['internal_reasoning'],
    };
    return Object.fromEntries(
      Object.entries(parts).flatMap(([key, price]) =>
        typeof price === 'string' ? [[key, formatUsd(partOf(rate(Number(price), key, 0), times))]] : [],
      ),
    );
  };
  const { tiers } = pricing;
  if (!Array.isArray(tiers)) return part(pricing);
  const above = tiers as readonly Readonly<Record<string, string | number>>[];
  return { ...part(pricing), tiers: above.map((tier) => ({ above: tier['above']!, ...part(tier) })) };
}

function partOf(amount: bigint, [times, divisor]: Fraction): bigint {
  const part = (amount * times + divisor - 1n) / divisor;
  return part > 0n && part < LEAST ? LEAST : part;
}

/** The price for a key, or that of the key whose price it has. null if it has none. */
function priceIn(prices: Readonly<Record<string, unknown>>, key: string): bigint | null {
  const price = prices[key];
  if (typeof price === 'string') return rate(Number(price), '', 0);
  const parent = PARENTS[key];
  return parent === undefined ? null : priceIn(prices, parent);
}
