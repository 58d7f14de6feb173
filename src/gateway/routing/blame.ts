import type { UpstreamFailure } from '#wire';
import type { Call, Candidate } from '../call.ts';
import type { Health } from './router.ts';

/** Decides which offers the failures of one call count against. */
export interface Blame {
  /** An attempt failed by its provider's fault. `failure`: null where the call's time ran out. */
  failed(candidate: Candidate, startedAt: number, failure: Pick<UpstreamFailure, 'unreachable'> | null): void;
  /** A provider refused the request. That is its failure only where another one of the same service serves it. */
  refused(candidate: Candidate, startedAt: number): void;
  /** The call is over. `server`: who served it; null where it is not tried again. */
  over(server: Candidate | null): void;
}

interface Suspect {
  readonly candidate: Candidate;
  readonly startedAt: number;
  readonly refused: boolean;
}

/**
 * Every failure makes its offer rest for the caller's account. It counts against the offer only where the call
 * failed nowhere else: a request that fails at two offers is more likely wrong itself. It is evidence for other
 * accounts only where the call had money locked, so that accounts which cost nothing to make do not count.
 *
 * A refusal is evidence only where the operator's own provider served the request. Else whoever has a provider that
 * takes everything could write requests that are wrong, and so close the offers of others.
 */
export function createBlame(health: Health, call: Call): Blame {
  const { account } = call.caller;
  const suspects: Suspect[] = [];
  return {
    failed(candidate, startedAt, failure) {
      if (failure?.unreachable) return health.unreachable(candidate.offer, call.free === null);
      health.failed(candidate.offer, account, startedAt);
      suspects.push({ candidate, startedAt, refused: false });
    },
    refused(candidate, startedAt) {
      suspects.push({ candidate, startedAt, refused: true });
    },
    over(server) {
      const isWrong = ({ candidate: { offer }, refused }: Suspect): boolean =>
        refused && server?.offer.service === offer.service;
      for (const suspect of suspects)
        if (isWrong(suspect)) health.failed(suspect.candidate.offer, account, suspect.startedAt);
      const [suspect] = suspects;
      if (suspects.length !== 1 || suspect === undefined || call.free !== null) return;
      const { candidate, startedAt, refused } = suspect;
      if (refused && !isWrong(suspect)) return;
      const isTold = !refused || server?.offer.endpoint.kind === 'direct';
      health.blamed(candidate.offer, account, startedAt, isTold && candidate.estimate > 0n);
    },
  };
}
