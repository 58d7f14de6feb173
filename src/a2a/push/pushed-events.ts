import type { Offer, Tasks } from '#gateway';
import { withoutMoney } from '../metadata.ts';
import { sightOf } from '../tasks-of-agents.ts';
import type { Notify } from './push-relay.ts';
import type { PushRoutesOptions } from './push-routes.ts';

export interface PushedEventsOptions {
  readonly tasks: Pick<Tasks, 'find' | 'saw'>;
  /** The offer with this id; null for one that is gone. */
  readonly offer: (id: string) => Pick<Offer, 'priceCap'> | null;
  readonly notify: Notify;
}

/**
 * What is done with what an agent tells of a task: an end is noted and settled, then the client's webhooks are told. What it tells of a task that is not its
 * own is unknown, and what it tells again, or after the end, changes nothing.
 */
export function createPushedEvents({ tasks, offer, notify }: PushedEventsOptions): PushRoutesOptions['onEvent'] {
  return async ({ key, address, version, event, value }) => {
    const task = await tasks.find(key, address);
    if (task === null || task.offerId !== address.offerId) return false;
    if (!task.live) return true;
    // Of an offer that is gone it is not known how its use is priced: whoever looks at the task when it is back settles it.
    const own = offer(address.offerId);
    const sight = own === null ? null : sightOf(own, event, task.output);
    if (sight !== null) await tasks.saw(key, sight);
    notify(key, { version }, withoutMoney(value));
    return true;
  };
}
