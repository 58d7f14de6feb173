import type * as prom from 'prom-client';
import { Counter, Gauge, Histogram } from './prom.ts';

/* Metrics are defined in tables. Each row of a table becomes one metric of a registry. */

/** `[name, help, ...labels]` */
type CounterRow = readonly [name: string, help: string, ...labels: readonly string[]];
/** `[name, help, bucket boundaries, ...labels]` */
type HistogramRow = readonly [name: string, help: string, buckets: readonly number[], ...labels: readonly string[]];
/** `[name, help, read, ...labels]`. `read` is called at each scrape. */
export type GaugeRow = readonly [
  name: string,
  help: string,
  read: () => Reading | Promise<Reading>,
  ...labels: readonly string[],
];
/** The value of a gauge without labels, or all samples of one with labels. */
type Reading = number | readonly Sample[];
export type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

/** `shared`: labels of every row, in addition to its own labels. */
export function counters<K extends string>(
  registry: prom.Registry,
  shared: readonly string[],
  rows: Readonly<Record<K, CounterRow>>,
): Record<K, prom.Counter> {
  return make(rows, ([name, help, ...own]) => {
    return new Counter({ name, help, labelNames: [...shared, ...own], registers: [registry] });
  });
}

export function histograms<K extends string>(
  registry: prom.Registry,
  shared: readonly string[],
  rows: Readonly<Record<K, HistogramRow>>,
): Record<K, prom.Histogram> {
  return make(rows, ([name, help, buckets, ...own]) => {
    const labelNames = [...shared, ...own];
    return new Histogram({ name, help, buckets: [...buckets], labelNames, registers: [registry] });
  });
}

/** `aggregator`: how to combine the values of several processes. */
export function gauges(
  registry: prom.Registry,
  shared: readonly string[],
  rows: readonly GaugeRow[],
  aggregator: 'sum' | 'max' | 'min' = 'sum',
): void {
  for (const [name, help, read, ...own] of rows) {
    const labelNames = [...shared, ...own];
    const gauge = new Gauge({ name, help, labelNames, aggregator, registers: [], collect: refresh });
    async function refresh(): Promise<void> {
      const found = await read();
      gauge.reset();
      if (typeof found === 'number') gauge.set(found);
      else for (const [labels, value] of found) gauge.set(labels, value);
    }
    registry.registerMetric(gauge);
  }
}

/** A count from the database; -1 if the database does not answer. */
export const orSilent = (count: () => number | Promise<number>) => async (): Promise<number> => {
  try {
    return await count();
  } catch {
    return -1;
  }
};

function make<K extends string, R, M>(rows: Readonly<Record<K, R>>, one: (row: R) => M): Record<K, M> {
  return Object.fromEntries(Object.entries<R>(rows).map(([key, row]) => [key, one(row)])) as Record<K, M>;
}
