import type { MicroUsd } from '#billing';
import type { Offer } from '../call.ts';
import type { RoutePreferences } from './preferences.ts';

/**
 * The state of an offer. `good`: no recent failure. `recent`: it failed within the last 30 s and has succeeded since.
 * `probe`: it has cooled down and waits for one call to try it. `resting`: it cools down, a call is probing it, or its
 * provider is away. `open`: like `resting`, but after so many failures in a row that it must not be tried.
 */
export type HealthState = 'good' | 'recent' | 'probe' | 'resting' | 'open';

/** The health of offers, from real calls. */
export interface Health {
  /**
   * `counted`: false for a call that is free by its protocol's table. Such a call shows that the offer can be reached,
   * but does not count in the figures.
   */
  succeeded(
    offer: Offer,
    sample: { readonly firstByteMs: number; readonly durationMs: number; readonly completionTokens: number },
    counted?: boolean,
  ): void;
  /** The call did not reach the offer. No account can cause that, so the offer rests for all. */
  unreachable(offer: Offer, counted?: boolean): void;
  /** A call of `account` failed, which began at the offer at `beganAt`. The offer rests for that account. */
  failed(offer: Offer, account: string, beganAt: number): void;
  /**
   * The last failure of this account's calls was the offer's fault, because the call failed nowhere else. It counts in
   * the figures. `evidence`: it also counts for all accounts. If several accounts have evidence, the offer rests for
   * all.
   */
  blamed(offer: Offer, account: string, beganAt: number, evidence: boolean): void;
  /**
   * A provider has reconnected. Failures on its earlier connection need no more cool-down: one call may try it at once.
   */
  returned(provider: string): void;
  flagged(offer: Offer, flag: string): void;
  /** False while an offer cools down after a failure, for this account or for all. */
  available(offer: Offer, account?: string): boolean;
  /** The health state for `account`; without `account`, The health state for all accounts. */
  healthState(offer: Offer, account?: string): HealthState;
  /** A call is about to try this cooled-down offer. Other calls stay away until its result is known. */
  probing(offer: Offer, account?: string): void;
  /**
   * The call that was going to try this offer was refused before it was sent. Another call may try the offer at once.
   */
  notProbed(offer: Offer, account?: string): void;
  /** Seconds until the first of these offers may be tried again, at least 1. */
  retryAfterS(offers: readonly Offer[], account?: string): number;
  /** 1 if all replies of the last hour followed the rules. The more replies were flagged, the closer to 0. */
  compliance(offer: Offer): number;
  /**
   * Median time to the first byte, and median completion tokens per second, of the newest calls; null before the first.
   */
  latencyMs(offer: Offer): number | null;
  tokensPerSecond(offer: Offer): number | null;
  stats(offer: Offer): OfferStats;
}

export interface OfferStats {
  /** All calls ever, of all gateways of the database. `lastHour` also counts all gateways. */
  readonly requests: number;
  readonly failures: number;
  readonly flags: Readonly<Record<string, number>>;
  /** `flags`: how often replies were flagged. */
  readonly lastHour: { readonly requests: number; readonly failures: number; readonly flags: number };
  /** Share of the last hour's calls that did not fail, 0 to 1; null before the first. */
  readonly uptime: number | null;
  /**
   * Milliseconds to the first byte, and completion tokens per second, measured by this process; null before the first
   * call.
   */
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null;
  readonly throughput: { readonly p50: number } | null;
}

export interface Router {
  /**
   * Orders offers for attempts: at most `attemptsMax`, the best first. Empty if no offer is acceptable and healthy.
   * `images`: the number of images in the prompt, which count in the price for the weighing. `costOf`: the most that
   * this call costs at an offer; it replaces the price. `account`: the caller's; some offers may rest for this account
   * alone. `prefers`: healthy offers for which it is true come before all others except those in `order`.
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
  /** Remembers which offer served a sticky key. */
  served(stickyKey: string, offer: Offer): void;
}
