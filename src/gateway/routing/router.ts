import type { Offer } from '../call.ts';
import type { RoutePreferences } from './preferences.ts';

/** What is known of an offer's health, from real calls. */
export interface Health {
  succeeded(offer: Offer, sample: { readonly firstByteMs: number; readonly durationMs: number; readonly completionTokens: number }): void;
  failed(offer: Offer): void;
  flagged(offer: Offer, flag: string): void;
  /** False while an offer cools down after a failure. */
  available(offer: Offer): boolean;
  stats(offer: Offer): OfferStats;
}

export interface OfferStats {
  readonly requests: number;
  readonly failures: number;
  readonly flags: Readonly<Record<string, number>>;
  /** Share of the last hour's calls that did not fail, 0 to 1; null before the first. */
  readonly uptime: number | null;
  /** Milliseconds to the first byte, and completion tokens per second; null before the first call. */
  readonly latencyMs: { readonly p50: number; readonly p95: number } | null;
  readonly throughput: { readonly p50: number } | null;
}

export interface Router {
  /** Orders offers for attempts: at most `attemptsMax`, the best first. Empty when none is acceptable and healthy. */
  choose(offers: readonly Offer[], preferences: RoutePreferences, stickyKey: string | null): readonly Offer[];
  /** Remembers who served a sticky key. */
  served(stickyKey: string, offer: Offer): void;
}
