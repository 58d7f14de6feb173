import { GatewayError } from '#wire';
import type { PipelineOptions } from '../pipeline.ts';

/** The state of a gateway that stops: running calls go on, no new call begins. */
interface Drain {
  /** Authenticates callers. After `begin` it throws GatewayError `service_unavailable`. */
  readonly authenticate: PipelineOptions['authenticate'];
  begin(): void;
  readonly begun: () => boolean;
}

export function createDrain(authenticate: PipelineOptions['authenticate']): Drain {
  let begun = false;
  return {
    authenticate(headers, address, calls) {
      if (!begun) return authenticate(headers, address, calls);
      throw new GatewayError(
        'service_unavailable',
        'This gateway is shutting down: retry in a moment, or at another gateway',
        {
          retryAfterS: 1,
        },
      );
    },
    begin: () => {
      begun = true;
    },
    begun: () => begun,
  };
}
