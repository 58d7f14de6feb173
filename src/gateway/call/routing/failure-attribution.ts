import type { UpstreamFailure } from '#wire';
import type { Health } from '#catalog';
import type { Call, Candidate } from '../call.ts';

/** Decides which offers the failures of one call count against. */
export interface FailureAttribution {
  /** An attempt failed through its provider's fault. `failure`: null if the call timed out. */
  failed(candidate: Candidate, startedAt: number, failure: Pick<UpstreamFailure, 'unreachable'> | null): void;
  /**
   * A provider refused the request. This is its failure only if another provider of the same service serves the
   * request.
   */
  refused(candidate: Candidate, startedAt: number): void;
  /** The call is over. `server`: the candidate that served it; null if it failed and no further candidate is tried. */
  over(server: Candidate | null): void;
}

interface Suspect {
  readonly candidate: Candidate;
  readonly startedAt: number;
  readonly refused: boolean;
}

/**
 * After every failure the offer rests for the caller's account. The failure counts against the offer only if the call
 * failed at no other offer: a request that fails at two offers is more likely wrong itself. It is evidence for other
 * accounts only if the call had money locked. Otherwise anybody could create accounts without cost to produce evidence.
 *
 * A refusal is evidence only if the operator's own provider served the request. Otherwise somebody whose provider
 * accepts everything could send invalid requests and so close the offers of other providers.
 */
export function createFailureAttribution(health: Health, call: Call): FailureAttribution {
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
