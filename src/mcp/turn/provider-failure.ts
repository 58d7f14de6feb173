import { UpstreamFailure } from '#wire';

/** A failure of the provider. Never retryable: a tool may have acted. `status`: null where no HTTP status came. */
export const providerFailure = (what: string, status: number | null, cause?: unknown): UpstreamFailure =>
  new UpstreamFailure(what, { status, retryable: false, blame: 'provider', ...(cause === undefined ? {} : { cause }) });

/**
 * Throws UpstreamFailure where a server refuses the provider's credentials. The status says nothing of the client,
 * which would take it for its own.
 */
export function refuseCredentialStatus(status: number): void {
  if (status === 401 || status === 403 || status === 407)
    throw providerFailure(`it answered with status ${status}`, status);
}
