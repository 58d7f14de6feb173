import type { UpstreamFailure } from '#wire';
import type { Call, Candidate } from '../call.ts';
import type { Health } from './router.ts';

/** Decides which offers the failures of one call count against. */
export interface Blame {
  /** An attempt failed by its provider's fault. `failure`: null where the call's time ran out. */
  failed(candidate: Candidate, startedAt: number, failure: Pick<UpstreamFailure, 'unreachable'> | null): void;
  /** The call is over: it was served elsewhere, or is not tried again. */
  over(): void;
}

/**
 * Every failure makes its offer rest for the caller's account. It counts against the offer only where the call
 * failed nowhere else: a request that fails at two offers is more likely wrong itself. It is evidence for other
 * accounts only where the call had money locked, so that accounts which cost nothing to make do not count.
 */
export function createBlame(health: Health, call: Call): Blame {
  const { account } = call.caller;
  let suspect: { readonly candidate: Candidate; readonly startedAt: number } | null = null;
  let failures = 0;
  return {
    failed(candidate, startedAt, failure) {
      if (failure?.unreachable) return health.unreachable(candidate.offer, call.free === null);
      health.failed(candidate.offer, account, startedAt);
      failures++;
      suspect = { candidate, startedAt };
    },
    over() {
      if (failures !== 1 || suspect === null || call.free !== null) return;
      health.blamed(suspect.candidate.offer, account, suspect.startedAt, suspect.candidate.estimate > 0n);
    },
  };
}
