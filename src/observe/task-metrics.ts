import type { Registry } from 'prom-client';
import type { TaskSink, Task } from '#tasks';
import { counters, gauges, orSilent } from './metric-table.ts';
import { OTHER, type OfferSeries } from './offer-series.ts';

/**
 * Maximum number of states of ended tasks with their own series. Agents choose the names of states. The others share
 * one series.
 */
const STATES_MAX = 32;
const GAVE_UP = 'gave_up';

/**
 * Metrics of tasks. A call that ended as pending was counted then, without money. Its charge is added to the money
 * metrics when its task has ended.
 */
export function createTaskMetrics(
  registry: Registry,
  offers: OfferSeries,
  live: () => number | Promise<number>,
): TaskSink {
  const { begun, ended } = counters(registry, ['primitive'], {
    begun: ['tollgate_tasks_begun_total', 'Tasks that continued after the call that began them'],
    ended: [
      'tollgate_tasks_ended_total',
      'Tasks that ended, by the state in which they did; gave_up: nobody saw their end in time',
      'state',
    ],
  });
  const help = 'Tasks that are running; -1 when the database does not answer';
  gauges(registry, [], [['tollgate_tasks_live', help, orSilent(live)]], 'max');
  const states = new Set<string>();
  const labelOf = ({ state }: Task): string => {
    if (states.size < STATES_MAX) states.add(state);
    return states.has(state) ? state : OTHER;
  };
  return {
    begun: ({ primitive }) => begun.inc({ primitive }),
    ended: (task, gaveUp) => ended.inc({ primitive: task.primitive, state: gaveUp ? GAVE_UP : labelOf(task) }),
    concluded({ task, providerName, usage, settlement, flags }) {
      const { offerId: id, primitive, service, provider } = task;
      const offer = { id, primitive, service, provider: { id: provider, name: providerName } };
      offers.settled(offers.of(offer), usage, settlement);
      offers.flagged(offer, flags);
    },
  };
}
