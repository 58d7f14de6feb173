import type { GatewayError } from '#errors';
import type { Call } from './call.ts';

/** Ends one running call with an error, which its client gets. What it had delivered is not charged. */
type StopCall = (reason: GatewayError) => void;
type RunningCall = Pick<Call, 'id' | 'parent'>;

/** The calls and runs that are at work at this gateway, so that they can be ended before their time. */
export class RunningCalls {
  /** By the call itself, so that no object is made for it. */
  readonly #stops = new Map<RunningCall, StopCall>();

  began(call: RunningCall, stop: StopCall): void {
    this.#stops.set(call, stop);
  }

  over(call: RunningCall): void {
    this.#stops.delete(call);
  }

  /** Ends the call with this id, and the calls under it. Returns whether any of them was at work here. */
  end(id: string, reason: GatewayError): boolean {
    const ids = new Set([id]);
    const found = new Map<RunningCall, StopCall>();
    // A call under another one may be in the map before it.
    for (let known = -1; known < found.size;) {
      known = found.size;
      for (const [call, stop] of this.#stops) {
        if (!ids.has(call.id) && (call.parent === null || !ids.has(call.parent))) continue;
        ids.add(call.id);
        found.set(call, stop);
      }
    }
    for (const stop of found.values()) stop(reason);
    return found.size > 0;
  }

  endAll(reason: GatewayError): void {
    for (const stop of this.#stops.values()) stop(reason);
  }
}
