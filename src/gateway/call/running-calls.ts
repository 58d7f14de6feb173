import { PlacedList, type Placed } from '#wire';
import type { GatewayError } from '#errors';
import type { Call } from './call.ts';

/** A call or run that is at work. */
export interface RunningCall extends Placed {
  readonly call: Pick<Call, 'id' | 'parent'>;
  /** Ends it with an error, which its client gets. What it had delivered is not charged. */
  stop(reason: GatewayError): void;
}

/** The calls and runs that are at work at this gateway, so that they can be ended before their time. */
export class RunningCalls {
  readonly #running = new PlacedList<RunningCall>();

  add(running: RunningCall): void {
    this.#running.add(running);
  }

  remove(running: RunningCall): void {
    this.#running.remove(running);
  }

  /** Ends the call with this id, and the calls under it. Returns whether any of them was at work here. */
  end(id: string, reason: GatewayError): boolean {
    const ids = new Set([id]);
    const matches = new Set<RunningCall>();
    // A call under another one may be in the list before it.
    for (let known = -1; known < matches.size;) {
      known = matches.size;
      for (const running of this.#running.items) {
        const { call } = running;
        if (!ids.has(call.id) && (call.parent === null || !ids.has(call.parent))) continue;
        ids.add(call.id);
        matches.add(running);
      }
    }
    for (const running of matches) running.stop(reason);
    return matches.size > 0;
  }

  endAll(reason: GatewayError): void {
    // A stop may take its call out of the list at once, and another one into its place.
    for (const running of this.#running.items.slice()) running.stop(reason);
  }
}
