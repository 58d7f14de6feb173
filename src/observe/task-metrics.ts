import { Counter, Gauge, type Registry } from 'prom-client';
import type { Offer } from '#gateway';
import type { TaskSink, Task } from '#tasks';

export interface TaskMetricsOptions {
  readonly registry: Registry;
  /** Where the money and the use of an offer's calls are counted. */
  readonly seriesOf: (offer: CountedOffer) => ConcludedSeries;
  readonly shortfall: { inc(value: number): void };
  readonly flagged: (offer: CountedOffer, flag: string) => void;
  /** Tasks that go on, over all gateways on the database; asked at each scrape. */
  readonly live: () => number | Promise<number>;
}

/** What an offer is counted by. */
export type CountedOffer = Pick<Offer, 'id' | 'primitive' | 'service' | 'provider'>;

export interface ConcludedSeries {
  readonly input: { observe(value: number): void };
  readonly output: { observe(value: number): void };
  readonly charged: { inc(value?: number): void };
  readonly fee: { inc(value?: number): void };
}

/** Words of protocols for how a task ended that have a series of their own. The rest share one. */
const STATES_MAX = 32;
const OTHER = 'other';
const GAVE_UP = 'gave_up';

/**
 * Metrics of tasks. A call that was pending at its own end was counted then, without money: what it was charged at
 * last is added where all money is.
 */
export function createTaskMetrics({ registry, seriesOf, shortfall, flagged, live }: TaskMetricsOptions): TaskSink {
  const registers = [registry];
  const begun = new Counter({
    name: 'tollgate_tasks_begun_total',
    help: 'Tasks that outlived the call that began them',
    labelNames: ['primitive'],
    registers,
  });
  const ended = new Counter({
    name: 'tollgate_tasks_ended_total',
    help: 'Tasks that ended, by the state in which they did; gave_up: nobody saw their end in time',
    labelNames: ['primitive', 'state'],
    registers,
  });
  registry.registerMetric(
    new Gauge({
      name: 'tollgate_tasks_live',
      help: 'Tasks that go on; -1 when the database does not answer',
      registers: [],
      // Every process counts the tasks of all.
      aggregator: 'max',
      async collect() {
        this.set(await Promise.resolve(live()).catch(() => -1));
      },
    }),
  );
  const states = new Set<string>();
  const labelOf = ({ state }: Task): string => {
    if (states.size < STATES_MAX) states.add(state);
    return states.has(state) ? state : OTHER;
  };
  return {
    begun({ primitive }) {
      begun.inc({ primitive });
    },
    ended(task, gaveUp) {
      ended.inc({ primitive: task.primitive, state: gaveUp ? GAVE_UP : labelOf(task) });
    },
    concluded({ task, providerName, usage, settlement, flags }) {
      const offer = {
        id: task.offerId,
        primitive: task.primitive,
        service: task.service,
        provider: { id: task.provider, name: providerName },
      };
      const of = seriesOf(offer);
      if (usage?.prompt !== undefined) of.input.observe(Number(usage.prompt));
      if (usage?.completion !== undefined) of.output.observe(Number(usage.completion));
      if (settlement.charged > 0n) of.charged.inc(Number(settlement.charged));
      if (settlement.fee > 0n) of.fee.inc(Number(settlement.fee));
      if (settlement.shortfall > 0n) shortfall.inc(Number(settlement.shortfall));
      for (const flag of flags) flagged(offer, flag);
    },
  };
}
