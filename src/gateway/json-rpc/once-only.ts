import { UpstreamFailure } from '#wire';

/**
 * The failure of a tool's call. A tool may have acted: it is called again elsewhere only where nothing of the
 * request had been sent.
 */
export function onceOnly(error: unknown): unknown {
  if (!(error instanceof UpstreamFailure) || !error.retryable || error.unsent) return error;
  const { status, blame, detail, retryAfterS } = error;
  return new UpstreamFailure(error.message, { status, retryable: false, blame, detail, retryAfterS, cause: error });
}
