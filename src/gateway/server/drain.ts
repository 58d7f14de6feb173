import { GatewayStopping } from '#wire';
import type { PipelineOptions } from '../pipeline.ts';

/**
 * The state of a gateway that stops. First it is unready and serves on, then running calls go on and no new one begins.
 */
interface Drain {
  /** Authenticates callers. After `begin` it throws GatewayStopping. */
  readonly authenticate: PipelineOptions['authenticate'];
  /** From here on load balancers are told to take another gateway. */
  announce(): void;
  begin(): void;
  /** Whether a stop was announced or has begun. */
  readonly announced: () => boolean;
}

export function createDrain(authenticate: PipelineOptions['authenticate']): Drain {
  let announced = false;
  let begun = false;
  return {
    authenticate(headers, address, calls) {
      if (!begun) return authenticate(headers, address, calls);
      throw new GatewayStopping();
    },
    announce: () => {
      announced = true;
    },
    begin: () => {
      announced = true;
      begun = true;
    },
    announced: () => announced,
  };
}
