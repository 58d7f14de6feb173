import { GatewayError } from '#errors';
import type { Config } from '#config';
import type { RequestBodies } from '#http';
import { createGuardedFetch, OutboundFailure } from '#network/guarded-fetch';
import type { FetchInputs } from './input-images.ts';

const FETCH_MS = 15_000;

/**
 * Fetches files that requests name by their URLs. A URL must be https on the public internet; with `allowPrivate`, http
 * and private addresses are allowed too. The files count as bodies of requests.
 */
export function createFetchInputs(
  { allowPrivate }: Pick<Config['webhooks'], 'allowPrivate'>,
  bodies: Pick<RequestBodies, 'open'>,
): FetchInputs {
  const fetch = createGuardedFetch({ allowPrivate });
  return (account, network) => {
    const memory = bodies.open(account, network);
    return {
      async fetch(url, bytesMax) {
        try {
          const { status, body } = await fetch(url, {
            timeoutMs: FETCH_MS,
            bodyBytesMax: bytesMax,
            takeMemory: memory.grow,
          });
          if (status === 200) return body;
          throw new OutboundFailure(`the answer has status ${status}, and must have 200`);
        } catch (error) {
          if (!(error instanceof OutboundFailure)) throw error;
          throw new GatewayError('invalid_request', `could not be fetched: ${error.message}`, { cause: error });
        }
      },
      release: memory.release,
    };
  };
}
