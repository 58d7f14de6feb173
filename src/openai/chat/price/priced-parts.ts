import { isObject, type JsonObject } from '#wire';
import { BATCH_TIER, type Meter, type Price, pricedMeters, type ServiceTiers, type Usage } from '#billing/amounts';
import { isDefaultTier, SEARCHES_MAX } from '#config';
import type { Caller } from '#accounts';
import { flagBeyond, type RaisedFlag } from '#call/flags';
import { batchPriceOf, type Offer, serviceTiersOf } from '#catalog';

/** A bound on searches: `sure` of them, and `open` times the most of a model, where the request sets no limit. */
interface AskedSearches {
  readonly sure: number;
  readonly open: number;
  /** The most of a model that does not say. Default SEARCHES_MAX. */
  readonly usual?: number;
  /** The provider takes no limit, so more searches than these are no fault. They are not charged. */
  readonly unlimited?: true;
}

/** Facts of a request that decide which parts its tokens can have. What is absent, it does not ask for. */
export interface AskedParts {
  /** The prompt has sound. */
  readonly audio?: boolean;
  /** The answer may be spoken. */
  readonly audioOutput?: boolean;
  /** Whether the prompt may be written to a cache for an hour. It takes a search of the whole request. */
  readonly cacheHour?: () => boolean;
  readonly webSearches?: AskedSearches;
  /** Web searches of a reply that does not say how many it made. */
  readonly webSearchesUnsaid?: number;
}

export const NO_SEARCHES: AskedSearches = { sure: 0, open: 0 };

/**
 * The most searches of one tool that can be locked. A request that allows more is sent with this limit: what it would
 * lock could be more money than there is.
 */
const SEARCHES_LOCKED_MAX = 1_000;

/** The bound on searches of tools. `limits`: how often the request allows each tool; null where it does not say. */
export function searchesOf(limits: readonly (number | null)[]): AskedSearches {
  let sure = 0;
  let open = 0;
  for (const limit of limits)
    if (limit === null) open++;
    else sure += Math.min(limit, SEARCHES_LOCKED_MAX);
  return { sure, open };
}

/**
 * The limit of searches that a request for an offer has to have, because without one there is no highest price. null
 * for an offer without a price for them. `limit`: that of the request; null without one.
 */
export const searchLimitAt = (offer: Offer, limit: number | null): number | null =>
  prices(offer, 'web_search') ? Math.min(limit ?? searchesMax(offer), SEARCHES_LOCKED_MAX) : null;

/**
 * The parts of a call at one offer: the meters that have their own price, and the most of them that the request can
 * cause. A meter that is not in `atMost` is bounded by the tokens.
 */
export interface PricedParts {
  readonly priced: ReadonlySet<Meter>;
  readonly atMost: Usage;
  /** The provider was sent no limit for searches. */
  readonly searchesUnlimited?: true;
  readonly webSearchesUnsaid: number;
}

/** The parts of an offer that has prices for prompt and completion only. */
export const PLAIN: PricedParts = { priced: new Set(), atMost: {}, webSearchesUnsaid: 0 };

const WHOLE: ReadonlySet<Meter> = new Set<Meter>(['prompt', 'completion', 'image', 'call']);
const known = new WeakMap<Offer, ReadonlySet<Meter>>();

/** The meters, besides those of whole prompts and completions, that an offer has a price for in any service tier. */
function pricedAt(offer: Offer): ReadonlySet<Meter> {
  let meters = known.get(offer);
  if (meters === undefined) {
    const all = [offer.price, ...Object.values(offer.variants)].flatMap(({ rates }) => [...pricedMeters(rates)]);
    meters = new Set(all.filter((meter) => !WHOLE.has(meter)));
    known.set(offer, meters);
  }
  return meters;
}

/** Whether an offer has its own price for a meter, in any service tier. */
export const prices = (offer: Offer, meter: Meter): boolean => pricedAt(offer).has(meter);

/** The most searches at an offer of a call that sets no limit itself. */
const searchesMax = ({ model }: Offer, usual: number = SEARCHES_MAX): number => model!.searchesMax ?? usual;

/** The parts of a call at an offer. `parts` is called only if the offer has a price for any part. */
export function partsAt(offer: Offer, parts: () => AskedParts): PricedParts {
  const priced = pricedAt(offer);
  if (priced.size === 0) return PLAIN;
  const { audio, audioOutput, cacheHour, webSearches = NO_SEARCHES, webSearchesUnsaid = 0 } = parts();
  const searches = BigInt(webSearches.sure + webSearches.open * searchesMax(offer, webSearches.usual));
  return {
    priced,
    atMost: {
      ...(priced.has('input_cache_write_1h') && !cacheHour?.() ? { input_cache_write_1h: 0n } : {}),
      ...(priced.has('audio') && !audio ? { audio: 0n, input_audio_cache: 0n } : {}),
      ...(priced.has('audio_output') && !audioOutput ? { audio_output: 0n } : {}),
      ...(priced.has('web_search') ? { web_search: searches } : {}),
    },
    ...(webSearches.unlimited ? { searchesUnlimited: true } : {}),
    webSearchesUnsaid,
  };
}

/**
 * The service tier that a request names, if the offer has a price for it; else null, which is the default tier. The
 * tier of batches cannot be named: a provider would serve such a call at once, for half of the price.
 */
const tierAt = ({ variants }: Offer, tierName: unknown): string | null =>
  typeof tierName === 'string' &&
  tierName !== BATCH_TIER &&
  !isDefaultTier(tierName) &&
  Object.hasOwn(variants, tierName)
    ? tierName
    : null;

export function priceAt(offer: Offer, tierName: unknown): Price {
  const tier = tierAt(offer, tierName);
  return tier === null ? offer.price : offer.variants[tier]!;
}

/** The price of the line of a batch at an offer. Without another tier, a line asks for that of batches. */
export function linePriceAt(offer: Offer, tierName: unknown): Price {
  const isOfBatch = typeof tierName !== 'string' || tierName === BATCH_TIER || isDefaultTier(tierName);
  return (isOfBatch ? batchPriceOf(offer) : undefined) ?? priceAt(offer, tierName);
}

/** The service tiers that an answer may prove. One that came in a batch costs what its batch does. */
export const provableTiers = (offer: Offer, price: Price): ServiceTiers | undefined =>
  price === offer.variants[BATCH_TIER] ? undefined : serviceTiersOf(offer);

export const isLine = ({ run }: Pick<Caller, 'run'>): boolean => run?.call !== undefined;

/** Whether a model gets the `service_tier` of a request: it has prices for tiers, and the asked one is among them. */
export const takesTier = (offer: Offer, tierName: unknown): boolean =>
  tierAt(offer, tierName) !== null ||
  (typeof tierName === 'string' && isDefaultTier(tierName) && Object.keys(offer.variants).length > 0);

/** The tokens of a claim that count, and the known parts of them. */
interface Claimed {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cacheWritten: number;
  readonly reasoning: number;
  /** The most completion tokens that can be sound or pictures. */
  readonly otherMost: number;
  /** The least number of searches, whatever the claim says. */
  readonly searchesShown: number;
}

const count = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
const member = (holder: unknown, name: string): unknown => (isObject(holder) ? holder[name] : undefined);

/**
 * The usage of a claim, each token at the meter that prices it. Parts beyond what the request can cause count as
 * ordinary tokens, and searches beyond their bound do not count.
 */
export function splitUsage(claim: JsonObject, claimed: Claimed, parts: PricedParts): Usage {
  const { prompt, completion, cached, cacheWritten, reasoning, otherMost, searchesShown } = claimed;
  const { priced, atMost } = parts;
  const can = (meter: Meter) => priced.has(meter) && atMost[meter] !== 0n;
  const { prompt_tokens_details: ofPrompt, completion_tokens_details: ofCompletion } = claim;

  const pricesCache = CACHE.some((meter) => priced.has(meter));
  const written = pricesCache ? cacheWritten : 0;
  const hour = can('input_cache_write_1h') ? Math.min(hourOf(claim), written) : 0;
  const sound = can('audio') ? Math.min(count(member(ofPrompt, 'audio_tokens')) ?? 0, prompt - written) : 0;
  // Without a count of its own, the cached part is text as far as there is text.
  const cachedSound = Math.min(
    count(member(member(ofPrompt, 'cached_tokens_details'), 'audio_tokens')) ?? Math.max(0, cached - (prompt - sound)),
    sound,
    cached,
  );
  const soundRead = can('input_audio_cache') ? cachedSound : 0;
  const read = pricesCache ? Math.min(cached - cachedSound, prompt - written - sound) : 0;

  const spoken = can('audio_output')
    ? Math.min(count(member(ofCompletion, 'audio_tokens')) ?? 0, completion, otherMost)
    : 0;
  const pictures = can('image_output')
    ? Math.min(count(member(ofCompletion, 'image_tokens')) ?? 0, completion - spoken, otherMost - spoken)
    : 0;
  const thought = can('internal_reasoning') ? Math.min(reasoning, completion - spoken - pictures) : 0;

  const usage: Partial<Record<Meter, bigint>> = {
    prompt: BigInt(prompt - read - written - sound),
    completion: BigInt(completion - spoken - pictures - thought),
  };
  if (read + written > 0) {
    usage.input_cache_read = BigInt(read);
    usage.input_cache_write = BigInt(written - hour);
  }
  const rest: readonly (readonly [Meter, number | bigint])[] = [
    ['input_cache_write_1h', hour],
    ['audio', sound - soundRead],
    ['input_audio_cache', soundRead],
    ['internal_reasoning', thought],
    ['audio_output', spoken],
    ['image_output', pictures],
    ['web_search', chargedSearches(claim, searchesShown, parts)],
  ];
  for (const [meter, units] of rest) if (units) usage[meter] = BigInt(units);
  return usage;
}

/** `flags`, also with the searches of a claim if they are more than its provider was allowed. */
export function flagSearches(
  flags: readonly RaisedFlag[],
  claim: JsonObject,
  { atMost: { web_search: most }, searchesUnlimited }: PricedParts,
): readonly RaisedFlag[] {
  if (most === undefined || searchesUnlimited === true) return flags;
  return flagBeyond(flags, 'web_search', webSearchesOf(claim) ?? 0, Number(most));
}

const CACHE = ['input_cache_read', 'input_cache_write', 'input_cache_write_1h'] as const;

/**
 * The searches that are charged.
 * `shownCount`: those that the reply shows, if it was cut. `claim`: null without one.
 */
function chargedSearches(
  claim: JsonObject | null,
  shownCount: number,
  { atMost: { web_search: most = 0n }, webSearchesUnsaid }: PricedParts,
): bigint {
  const searches = (claim === null ? null : webSearchesOf(claim)) ?? webSearchesUnsaid;
  const units = BigInt(Math.max(searches, shownCount));
  return units < most ? units : most;
}

/** Tokens that were written to a cache for an hour, in the words of several services. */
const hourOf = (claim: JsonObject): number =>
  count(member(claim['cache_creation'], 'ephemeral_1h_input_tokens')) ??
  count(member(member(claim['prompt_tokens_details'], 'cache_creation_token_details'), 'ephemeral_1h_input_tokens')) ??
  0;

const webSearchesOf = (claim: JsonObject): number | null =>
  count(member(claim['server_tool_use'], 'web_search_requests')) ?? count(claim['num_search_queries']);
