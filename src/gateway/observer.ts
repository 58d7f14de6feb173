import type { UpstreamFailure } from '#wire';
import type { EndFrame, Resolution } from '#billing';
import type { Call, Offer, ProviderFlag } from './call.ts';

/**
 * Events of the pipeline. `started` comes once. Then each attempt gives `attemptStarted`, `firstByte`, and
 * `attemptFailed` or `flagged`. The last is `resolved` (billing has finished with the lock, possibly after the client
 * has left) or `failed` (there was no lock). `at` is on the clock of `call.begunAt`. A copy of a call with fewer
 * candidates counts as the same call.
 */
export interface CallObserver {
  started(call: Call): void;
  attemptStarted(call: Call, offer: Offer, at: number): void;
  firstByte(call: Call, at: number): void;
  attemptFailed(call: Call, offer: Offer, failure: UpstreamFailure): void;
  flagged(call: Call, offer: Offer, flags: readonly ProviderFlag[]): void;
  resolved(call: Call, resolution: Resolution): void;
  /**
   * There was no lock, because it was refused or because the call is free. A free call that was answered has `error`
   * null and its `end`. Has no effect on a call that was resolved.
   */
  failed(call: Call, error: unknown, end?: EndFrame | null): void;
  upstreamHeaders(call: Call): Readonly<Record<string, string>> | null;
  /** Number of calls that have started and not ended. */
  inFlight(): number;
}
