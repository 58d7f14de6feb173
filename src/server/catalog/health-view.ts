import type { Offer } from './offers.ts';
import type { Health } from './health/health.ts';
import type { OfferStats } from './health/offer-figures.ts';
import { viewRaise, type RaiseView } from './price-view.ts';

/**
 * The sources for an offer's health: the calls of all gateways of this database, and the providers that are connected
 * to any gateway.
 */
export interface HealthSources {
  readonly health: Pick<Health, 'available' | 'failing' | 'stats' | 'compliance'>;
  /** The gateway to which a provider's proxy is connected; null for none. */
  readonly registry: { locate(provider: string): object | null };
}

/**
 * `healthy`: a call of the last hour succeeded. `untried`: nothing is known against it, and no call of the last hour
 * shows that it works. `failing`: it is called, and hardly works. `cooling_down`: the offer failed and is skipped for a
 * while. `away`: its provider's proxy is not connected.
 */
export type OfferStatus = 'healthy' | 'untried' | 'failing' | 'cooling_down' | 'away';

/**
 * How well an offer has served, from the calls of all gateways of this database. Latency and throughput come from this
 * gateway's newest calls alone, and after a start from the calls of the last two days.
 */
export interface HealthView {
  readonly status: OfferStatus;
  readonly uptime_last_1h: number | null;
  readonly latency: OfferStats['latencyMs'];
  readonly throughput: OfferStats['throughput'];
  /** Share of the prompt tokens of today and yesterday (UTC) that were charged as cached, 0 to 1. */
  readonly cache_hit_rate: number | null;
  /** USD that 1M of these prompt tokens cost on average. */
  readonly effective_prompt_price: number | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
  readonly compliance: number;
  readonly price_raised: RaiseView | null;
}

export function offerStatus(offer: Offer, { health, registry }: HealthSources): OfferStatus {
  if (offer.endpoint.kind === 'tunnel' && registry.locate(offer.endpoint.provider) === null) return 'away';
  if (!health.available(offer)) return 'cooling_down';
  if (health.failing(offer)) return 'failing';
  const { requests, failures } = health.stats(offer).lastHour;
  return requests > failures ? 'healthy' : 'untried';
}

export function viewHealth(offer: Offer, healthSources: HealthSources): HealthView {
  const { uptime, latencyMs, throughput, requests, flags, prompts } = healthSources.health.stats(offer);
  return {
    status: offerStatus(offer, healthSources),
    uptime_last_1h: uptime,
    latency: latencyMs,
    throughput,
    cache_hit_rate: prompts && prompts.cached / prompts.prompt,
    // Micro-USD per token are USD per 1M tokens.
    effective_prompt_price: prompts && Math.round((prompts.charged / prompts.prompt) * 1e6) / 1e6,
    requests,
    flags,
    compliance: healthSources.health.compliance(offer),
    price_raised: viewRaise(offer),
  };
}

export const statusSchema = {
  type: 'string',
  enum: ['healthy', 'untried', 'failing', 'cooling_down', 'away'],
  description:
    "`healthy`: it can be called, and a call of the last hour succeeded; `untried`: it can be called, and no call of the last hour shows that it works; `failing`: it can be called, but more than half of its calls of the last hour failed, or the last that is known is that it could not be reached; `cooling_down`: it failed and is not used for a while if there are others; `away`: its provider's proxy is not connected",
} as const;

export const flagsSchema = {
  type: 'object',
  additionalProperties: { type: 'integer' },
  description: 'How often its replies broke the rules, by rule, such as `usage_missing`',
} as const;

export const raisedSchema = {
  title: 'PriceRaise',
  type: ['object', 'null'],
  description:
    'Set after the price more than doubled: the earlier price, as in `pricing`, and the time until which calls need `max_cost` or `max_price` to accept the new one; null without such a raise',
  required: ['before', 'effective_at'],
  properties: {
    before: { type: 'object', additionalProperties: true },
    effective_at: { type: 'string', description: 'RFC 3339' },
  },
} as const;

export const healthProperties = {
  status: statusSchema,
  uptime_last_1h: {
    type: ['number', 'null'],
    description: "Share of the last hour's calls that did not fail, 0 to 1; null when there were none",
  },
  latency: {
    title: 'Latency',
    type: ['object', 'null'],
    description:
      'Milliseconds to the first byte, of the newest calls through this gateway, after a start of the last two days; null before the first',
    required: ['p50', 'p95'],
    properties: { p50: { type: 'number' }, p95: { type: 'number' } },
  },
  throughput: {
    title: 'Throughput',
    type: ['object', 'null'],
    description:
      'Completion tokens per second, of the newest calls through this gateway, after a start of the last two days; null before the first',
    required: ['p50'],
    properties: { p50: { type: 'number' } },
  },
  cache_hit_rate: {
    type: ['number', 'null'],
    description:
      'Share of the prompt tokens of today and yesterday (UTC) that were charged as read from a cache, 0 to 1; null without such tokens, and where a cached token costs no less',
  },
  effective_prompt_price: {
    type: ['number', 'null'],
    description:
      'USD that 1M prompt tokens cost on average today and yesterday (UTC), cached or not; null where `cache_hit_rate` is',
  },
  requests: { type: 'integer', description: 'Calls ever' },
  flags: flagsSchema,
  compliance: {
    type: 'number',
    description:
      '1 if no reply of the last hour was flagged, closer to 0 the more were; the weight of a provider in the choice is proportional to its square',
  },
  price_raised: raisedSchema,
} as const;
