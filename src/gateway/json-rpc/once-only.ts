import { UpstreamFailure } from '#wire';

/**
 * Makes the failure of a tool call not retryable, because the tool may already have acted. The failure stays retryable
 * if nothing of the request was sent.
 */
export function onceOnly(error: unknown): unknown {
  if (!(error instanceof UpstreamFailure) || !error.retryable || error.unsent) return error;
  const { status, attributedTo, detail, retryAfterS } = error;
  return new UpstreamFailure(error.message, {
    status,
    retryable: false,
    attributedTo,
    detail,
    retryAfterS,
    cause: error,
  });
}
