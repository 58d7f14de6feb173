import type { MicroUsd } from '#billing';
import type { Offer } from '../call.ts';
import type { RoutePreferences } from './preferences.ts';

/**
 * How an offer stands. `good`: nothing is against it. `recent`: it failed within the last 30 s and has succeeded
 * since. `probe`: it has cooled down and waits for one call to try it. `resting`: it cools down, a call is probing
 * it, or its provider is away. `open`: the same after so many failures in a row that it is not to be tried.
 */
export type Standing = 'good' | 'recent' | 'probe' | 'resting' | 'open';

/** The health of offers, from real calls. */
export interface Health {
  /**
   * `counted`: false for a call that is free by its protocol's table. It shows that the offer can be reached, and
   * stays out of the figures.
   */
  succeeded(
    offer: Offer,
    sample: { readonly firstByteMs: number; readonly durationMs: number; readonly completionTokens: number },
    counted?: boolean,
  ): void;
  /** The call did not reach the offer. No account caused that, so the offer rests for all. */
  unreachable(offer: Offer, counted?: boolean): void;
  /** A call of `account` failed, which was given to the offer at `beganAt`: it rests for that account. */
  failed(offer: Offer, account: string, beganAt: number): void;
  /**
   * The last failure of this account's calls was the offer's fault, as the call failed nowhere else: it goes into
   * the figures. `evidence`: it counts for all accounts. When several accounts have evidence, the offer rests for
   * all.
   */
  blamed(offer: Offer, account: string, beganAt: number, evidence: boolean): void;
  /**
   * A provider is connected anew: what failed of it over its last connection need not cool down, one call may try
   * it at once.
   */
  returned(provider: string): void;
  flagged(offer: Offer, flag: string): void;
  /** False while an offer cools down after a failure: for every account, or for this one. */
  available(offer: Offer, account?: string): boolean;
  /** As `account` has it; without one, as every account has it. */
  standing(offer: Offer, account?: string): Standing;
  /** A call is about to try this cooled-down offer; others keep away until it is heard of. */
  probing(offer: Offer, account?: string): void;
  /** The call that was to try this offer was refused before it was sent: another may try it at once. */
  notProbed(offer: Offer, account?: string): void;
  /** Seconds until the first of these may be tried again, at least 1. */
  retryAfterS(offers: readonly Offer[], account?: string): number;
  /** 1 for an offer whose replies were in order over the last hour, towards 0 the more of them were flagged. */
  compliance(offer: Offer): number;
  /**
   * Median time to the first byte, and median completion tokens per second, of the newest calls; null before the first.
   */
  latencyMs(offer: Offer): number | null;
  tokensPerSecond(offer: Offer): number | null;
  stats(offer: Offer): OfferStats;
}

export interface OfferStats {
  /** Ever, by the calls of all gateways of the database; so is `lastHour`. */
  readonly requests: number;
  readonly failures: number;
  readonly flags: Readonly<Record<string, number>>;
  /** `flags`: how often replies were flagged. */
  readonly lastHour: { readonly requests: number; readonly failures: number; readonly flags: number };
  /** Share of the last hour's calls that did not fail, 0 to 1; null before the first. */
  readonly uptime: number | null;
  /** Milliseconds to the first byte, and completion tokens per second, of this process; null before the first call. */
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null;
  readonly throughput: { readonly p50: number } | null;
}

export interface Router {
  /**
   * Orders offers for attempts: at most `attemptsMax`, the best first. Empty when no offer is acceptable and
   * healthy. `images`: the number of images in the prompt, which count in the price that an offer is weighed by.
   * `costOf`: the most that this call costs at an offer, which replaces its price. `account`: the caller's; some
   * offers may rest for this account alone. `prefers`: those that are healthy come before others, but for `order`.
   */
  choose(
    offers: readonly Offer[],
    preferences: RoutePreferences,
    stickyKey: string | null,
    images?: number,
    costOf?: (offer: Offer) => MicroUsd,
    account?: string,
    prefers?: (offer: Offer) => boolean,
  ): readonly Offer[];
  /** Remembers who served a sticky key. */
  served(stickyKey: string, offer: Offer): void;
}
