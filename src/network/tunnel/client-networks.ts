import { GatewayError } from '#wire';
import { createFrameBudget, type FrameBudget } from './frame-meter.ts';

/** Counts connections by client network. */
export class ClientNetworks {
  readonly #connectionsMax: number;
  readonly #networks = new Map<string, { connections: number; readonly frames: FrameBudget }>();

  /** `connectionsMax`: for each network. */
  constructor(connectionsMax: number) {
    this.#connectionsMax = connectionsMax;
  }

  /** Throws GatewayError `rate_limit_exceeded` if the network has `connectionsMax` connections already. */
  check(network: string): void {
    const count = this.#networks.get(network)?.connections ?? 0;
    if (count >= this.#connectionsMax)
      throw new GatewayError(
        'rate_limit_exceeded',
        `There are ${count} connections from your network, which is the limit`,
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
