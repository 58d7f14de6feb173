import { GatewayError } from '#wire';
import { createFrameBudget, type FrameBudget } from './frame-meter.ts';

/** One connection's part in its client network. */
export interface NetworkPlace {
  /** Shared by all connections of the network. */
  readonly frames: FrameBudget;
  leave(): void;
}

/** Connections by the client network that they come from. */
export interface ClientNetworks {
  /** Throws GatewayError where the network has as many connections as one may have. */
  check(network: string): void;
  enter(network: string): NetworkPlace;
}

export function createClientNetworks(connectionsMax: number): ClientNetworks {
  const networks = new Map<string, { connections: number; readonly frames: FrameBudget }>();
  return {
    check(network) {
      const count = networks.get(network)?.connections ?? 0;
      if (count >= connectionsMax)
        throw new GatewayError(
          'rate_limit_exceeded',
          `There are ${count} connections from your network, which is the most one may have`,
          { retryAfterS: 10 },
        );
    },
    enter(network) {
      let found = networks.get(network);
      if (!found) networks.set(network, (found = { connections: 0, frames: createFrameBudget() }));
      found.connections += 1;
      return {
        frames: found.frames,
        leave() {
          found.connections -= 1;
          if (found.connections === 0) networks.delete(network);
        },
      };
    },
  };
}
