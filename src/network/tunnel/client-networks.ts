import { GatewayError } from '#wire';
import { createFrameBudget, type FrameBudget } from './frame-meter.ts';

/** Connections by the client network that they come from. */
export class ClientNetworks {
  readonly #connectionsMax: number;
  readonly #networks = new Map<string, { connections: number; readonly frames: FrameBudget }>();

  /** `connectionsMax`: of one network. */
  constructor(connectionsMax: number) {
    this.#connectionsMax = connectionsMax;
  }

  /** Throws GatewayError where the network has as many connections as one may have. */
  check(network: string): void {
    const count = this.#networks.get(network)?.connections ?? 0;
    if (count >= this.#connectionsMax)
      throw new GatewayError(
        'rate_limit_exceeded',
        `There are ${count} connections from your network, which is the most one may have`,
        { retryAfterS: 10 },
      );
  }

  /** Counts a connection until `leave`. All connections of a network share its `frames`. */
  enter(network: string): { readonly frames: FrameBudget; leave(): void } {
    const found = this.#networks.get(network) ?? { connections: 0, frames: createFrameBudget() };
    this.#networks.set(network, found);
    found.connections += 1;
    return {
      frames: found.frames,
      leave: () => {
        found.connections -= 1;
        if (found.connections === 0) this.#networks.delete(network);
      },
    };
  }
}
