import type { Poll, Observation, Tasks } from '#tasks';
import { type PricedByUse, bytesBehind } from '../send/ending.ts';
import { withoutMoney } from '../http/metadata.ts';
import { observationOf } from '../tasks/agent-tasks.ts';
import type { Notify } from './push-relay.ts';
import type { PushRoutesOptions } from './push-routes.ts';

interface PushedEventsOptions {
  readonly tasks: Pick<Tasks, 'find' | 'saw'>;
  /** The offer with this id; null if it no longer exists. */
  readonly offer: (id: string) => PricedByUse | null;
  /** Asks an agent for the state of a task. */
  readonly poll: Poll;
  readonly notify: Notify;
}

/**
 * Handles the notifications of agents. The end of a task is stored and settled, then the webhooks of its clients are
 * notified. A task of another agent counts as unknown. A repeated notification, or one after the end, changes nothing.
 */
export function createPushedEvents({ tasks, offer, poll, notify }: PushedEventsOptions): PushRoutesOptions['onEvent'] {
  return async ({ key, address, version, event, value }) => {
    const task = await tasks.find(key, address);
    if (task === null || task.offerId !== address.offerId) return false;
    if (!task.live) return true;
    // The price of a removed offer is not known. The task is settled when the offer is back and a poll finds the end of
    // the task.
    const own = offer(address.offerId);
    let observation: Observation | null = null;
    if (own !== null) {
      const told = own.priceCap === null ? 0 : Buffer.byteLength(JSON.stringify(value));
      const shown = async () => (await poll(task, AbortSignal.timeout(POLL_MS), true))?.bytes ?? 0;
      observation = observationOf(own, event, task.output, await bytesBehind(own, event, told, shown));
    }
    if (observation !== null) await tasks.saw(key, observation);
    notify(key, { version }, withoutMoney(value));
    return true;
  };
}

/** Short, because the agent waits for the answer to its notification. */
const POLL_MS = 3_000;
