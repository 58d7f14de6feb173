import type { UpstreamFailure } from '#wire';
import type { EndFrame, Resolution } from '#billing';
import type { Call, Offer, ProviderFlag } from './call.ts';

/**
 * Events of the pipeline: `started` once; then of each attempt `attemptStarted`, `firstByte`, `attemptFailed` or
 * `flagged`; at last `resolved` (billing is done with the lock, also after the client is gone) or `failed` (there
 * was no lock). `at` is on the clock of `call.begunAt`. A copy of a call with fewer candidates is the same call.
 */
export interface CallObserver {
  started(call: Call): void;
  attemptStarted(call: Call, offer: Offer, at: number): void;
  firstByte(call: Call, at: number): void;
  attemptFailed(call: Call, offer: Offer, failure: UpstreamFailure): void;
  flagged(call: Call, offer: Offer, flags: readonly ProviderFlag[]): void;
  resolved(call: Call, resolution: Resolution): void;
  /**
   * There was no lock: it was refused, or the call is free; then `error` is null where it was answered, as `end`
   * says. Without effect on a call that was resolved.
   */
  failed(call: Call, error: unknown, end?: EndFrame | null): void;
  upstreamHeaders(call: Call): Readonly<Record<string, string>> | null;
  /** Calls that have started and not ended. */
  inFlight(): number;
}
