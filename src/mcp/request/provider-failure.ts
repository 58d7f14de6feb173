import { UpstreamFailure } from '#wire';

/** A failure of the provider. Never retryable, because a tool may have acted. `status`: null without an HTTP status. */
export const providerFailure = (what: string, status: number | null, cause?: unknown): UpstreamFailure =>
  new UpstreamFailure(what, {
    status,
    retryable: false,
    attributedTo: 'provider',
    ...(cause === undefined ? {} : { cause }),
  });

/** The failure of a reply that ended without a response. `unread`: one of its events was not a message. */
export const withoutResponse = (status: number | null, unread = false): UpstreamFailure =>
  providerFailure(
    `it ended its answer without a response${unread ? ', and it sent an event that is no JSON-RPC message' : ''}`,
    status,
  );

/**
 * Throws UpstreamFailure if a server refuses the provider's credentials. The status is not passed on, because the
 * client would take it as a refusal of its own credentials.
 */
export function refuseCredentialStatus(status: number): void {
  if (status === 401 || status === 403 || status === 407)
    throw providerFailure(`it answered with status ${status}`, status);
}
