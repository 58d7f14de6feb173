import { GatewayError } from '#wire';
import type { Config } from '#config';
import type { RequestBodies } from '#gateway';
import type { FetchInputs } from '#media';
import { createGuardedFetch, OutboundFailure } from '#network';

const TIMEOUT_MS = 15_000;

/**
 * Fetches files that requests name by their URLs. A URL must be https on the public internet; with `allowPrivate`, http
 * and private addresses are allowed too. The files count as bodies of requests.
 */
export function createFetchInputs(
  { allowPrivate }: Config['webhooks'],
  bodies: Pick<RequestBodies, 'open'>,
): FetchInputs {
  const fetch = createGuardedFetch({ allowPrivate });
  return (account, network) => {
    const memory = bodies.open(account, network);
    return {
      async fetch(url, bytesMax) {
        try {
          const { status, body } = await fetch(url, {
            timeoutMs: TIMEOUT_MS,
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
