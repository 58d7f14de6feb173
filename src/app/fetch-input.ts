import { GatewayError } from '#wire';
import type { Config } from '#config';
import { createGuardedFetch, OutboundFailure } from '#network';

const TIMEOUT_MS = 15_000;

/**
 * Fetches a file that a request names by its URL. The URL must be https on the public internet; with `allowPrivate`,
 * http and private addresses are allowed too. Rejects with GatewayError `invalid_request`, whose text names no address.
 */
export function createFetchInput({
  allowPrivate,
}: Config['webhooks']): (url: string, bytesMax: number) => Promise<Buffer> {
  const fetch = createGuardedFetch({ allowPrivate });
  return async (url, bytesMax) => {
    try {
      const { status, body } = await fetch(url, { timeoutMs: TIMEOUT_MS, bodyBytesMax: bytesMax });
      if (status === 200) return body;
      throw new OutboundFailure(`the answer has status ${status}, and must have 200`);
    } catch (error) {
      if (!(error instanceof OutboundFailure)) throw error;
      throw new GatewayError('invalid_request', `could not be fetched: ${error.message}`, { cause: error });
    }
  };
}
