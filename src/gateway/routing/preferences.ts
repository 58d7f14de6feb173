import type { MicroUsd } from '#billing';

/** A consumer's preferences for the choice of a provider: the body's `provider` object and the name's suffix. */
export interface RoutePreferences {
  /** Provider ids or names to try first, in this order. */
  readonly order: readonly string[];
  /** Only these providers; empty for all. */
  readonly only: readonly string[];
  readonly ignore: readonly string[];
  readonly allowFallbacks: boolean;
  readonly sort: 'price' | 'latency' | 'throughput' | null;
  /** Highest acceptable rates, micro-USD per 1M units. */
  readonly maxPrice: { readonly prompt?: MicroUsd; readonly completion?: MicroUsd; readonly image?: MicroUsd } | null;
}

export const NO_PREFERENCES: RoutePreferences = {
  order: [],
  only: [],
  ignore: [],
  allowFallbacks: true,
  sort: null,
  maxPrice: null,
};
