import { createRequire } from 'node:module';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
import type * as prom from 'prom-client';

/*
 * The gateway's use of prom-client: its classes, the metrics of a process, tables in which each row defines a metric,
 * and counters that are faster than its own.
 *
 * Two private parts of prom-client are used, and only in this file: single files of the package, and the records in
 * which it keeps its series (`hashMap`). test/console/observe/prom-series.test.ts has the version with which they were
 * checked.
 */

// The index of prom-client also loads its default metrics, a push gateway and the API of OpenTelemetry: 139 files.
// Metrics need only 8 of them.
const load = createRequire(import.meta.url);

const Counter = load('prom-client/lib/counter.js') as typeof prom.Counter;
const Gauge = load('prom-client/lib/gauge.js') as typeof prom.Gauge;
const Histogram = load('prom-client/lib/histogram.js') as typeof prom.Histogram;
export const Registry = load('prom-client/lib/registry.js') as typeof prom.Registry;

export const aggregate = (metrics: object[]): prom.Registry =>
  (load('prom-client/lib/cluster.js') as typeof prom.AggregatorRegistry).aggregate<prom.PrometheusContentType>(metrics);

type AddMetric = (registry: prom.Registry, options: object) => void;

/**
 * The default metrics of prom-client, except CPU, which would load the API of OpenTelemetry, and the lag of the event
 * loop, which would wake an idle process a hundred times a second. Each path is written out,
 * so that the bundle of a release has these files.
 */
const ofProcess = () =>
  [
    load('prom-client/lib/metrics/processStartTime.js'),
    load('prom-client/lib/metrics/osMemoryHeap.js'),
    load('prom-client/lib/metrics/processOpenFileDescriptors.js'),
    load('prom-client/lib/metrics/processMaxFileDescriptors.js'),
    load('prom-client/lib/metrics/processResources.js'),
    load('prom-client/lib/metrics/processHandles.js'),
    load('prom-client/lib/metrics/processRequests.js'),
    load('prom-client/lib/metrics/heapSizeAndUsed.js'),
    load('prom-client/lib/metrics/heapSpacesSizeAndUsed.js'),
    load('prom-client/lib/metrics/version.js'),
    load('prom-client/lib/metrics/gc.js'),
  ] as readonly AddMetric[];

/**
 * Adds metrics of event loop, memory, garbage collection and CPU of this process. All gateways of a process share these
 * metrics: prom-client never stops its observers of event loop and garbage collection, and these would keep each
 * gateway in memory.
 */
export function addProcessMetrics(registry: prom.Registry): void {
  ofThisProcess ??= processMetrics();
  for (const metric of ofThisProcess.getMetricsAsArray()) registry.registerMetric(metric as unknown as prom.Metric);
}

let ofThisProcess: prom.Registry | null = null;

function processMetrics(): prom.Registry {
  const registry = new Registry();
  for (const add of ofProcess()) add(registry, {});
  eventLoopLag(registry);
  cpuSeconds(registry, 'process_cpu_user_seconds_total', 'Total user CPU time', ({ user }) => user);
  cpuSeconds(registry, 'process_cpu_system_seconds_total', 'Total system CPU time', ({ system }) => system);
  cpuSeconds(registry, 'process_cpu_seconds_total', 'Total CPU time', ({ user, system }) => user + system);
  return registry;
}

/**
 * The delays of the event loop since the last scrape, with the names that prom-client gives them. Each turn of the loop
 * is a sample: the time in which it could not take the next event. A Node that does not know `samplePerIteration` takes
 * a sample each 100 ms instead, and counts these 100 ms too.
 */
function eventLoopLag(registry: prom.Registry): void {
  const delays = monitorEventLoopDelay({ samplePerIteration: true, resolution: 100 });
  delays.enable();
  type Row = readonly [suffix: string, aggregator: prom.Aggregator, help: string, nanoseconds: () => number];
  const rows: readonly Row[] = [
    ['_min', 'min', 'The minimum recorded event loop delay.', () => delays.min],
    ['_max', 'max', 'The maximum recorded event loop delay.', () => delays.max],
    ['_mean', 'average', 'The mean of the recorded event loop delays.', () => delays.mean],
    ['_stddev', 'average', 'The standard deviation of the recorded event loop delays.', () => delays.stddev],
    ['_p50', 'average', 'The 50th percentile of the recorded event loop delays.', () => delays.percentile(50)],
    ['_p90', 'average', 'The 90th percentile of the recorded event loop delays.', () => delays.percentile(90)],
    ['_p99', 'average', 'The 99th percentile of the recorded event loop delays.', () => delays.percentile(99)],
  ];
  const gaugeOf = (suffix: string, aggregator: prom.Aggregator, help: string, collect?: () => Promise<void>) =>
    new Gauge({
      name: `nodejs_eventloop_lag${suffix}_seconds`,
      help,
      aggregator,
      registers: [registry],
      ...(collect ? { collect } : {}),
    });
  const gauges = rows.map(([suffix, aggregator, help, read]) => ({ gauge: gaugeOf(suffix, aggregator, help), read }));
  const lag = gaugeOf('', 'average', 'Lag of event loop in seconds.', async () => {
    const begun = performance.now();
    // Without a sample the histogram has no numbers.
    for (const { gauge, read } of gauges) gauge.set((delays.count === 0 ? 0 : read()) / 1e9);
    delays.reset();
    await setImmediate();
    lag.set((performance.now() - begun) / 1000);
  });
}

function cpuSeconds(
  registry: prom.Registry,
  name: string,
  time: string,
  micros: (usage: NodeJS.CpuUsage) => number,
): void {
  const counter = new Counter({ name, help: `${time} spent in seconds.`, registers: [registry], collect: refresh });
  function refresh(): void {
    counter.reset();
    counter.inc(micros(process.cpuUsage()) / 1e6);
  }
}

/** `[name, help, ...labels]` */
type CounterRow = readonly [name: string, help: string, ...labels: readonly string[]];
/** `[name, help, bucket boundaries, ...labels]` */
type HistogramRow = readonly [name: string, help: string, buckets: readonly number[], ...labels: readonly string[]];
/** `[name, help, read, ...labels]`. `read` is called at each scrape. */
export type GaugeRow = readonly [
  name: string,
  help: string,
  read: () => GaugeValue | Promise<GaugeValue>,
  ...labels: readonly string[],
];
/** The value of a gauge without labels, or all samples of one with labels. */
type GaugeValue = number | readonly Sample[];
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
      const reading = await read();
      gauge.reset();
      if (typeof reading === 'number') gauge.set(reading);
      else for (const [labels, value] of reading) gauge.set(labels, value);
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

type Labels = Readonly<Record<string, string>>;

export interface CounterSeries {
  inc(value?: number): void;
}
export interface HistogramSeries {
  observe(value: number): void;
}

/**
 * The record that prom-client keeps for one series. It is not part of the documented interface. If it is not found, the
 * documented functions are used.
 */
interface CounterRecord {
  readonly labels: Labels;
  value: number;
}

interface HistogramRecord {
  readonly labels: Labels;
  readonly bucketValues: Record<string, number>;
  sum: number;
  count: number;
}

/**
 * One series of a counter. prom-client's own handle builds the key of the series from all its labels at each use, and
 * looks it up: 0.3 µs and 300 bytes, nine times in each call. This one looks up its record only once. The series
 * appears in the text after its first use.
 */
export function counterSeries(counter: prom.Counter, labels: Labels): CounterSeries {
  let record: CounterRecord | null = null;
  return {
    inc(value = 1) {
      if (record !== null && value >= 0) {
        record.value += value;
        return;
      }
      counter.inc(labels, value);
      record = recordOf<CounterRecord>(counter, labels, ({ value: current }) => typeof current === 'number');
    },
  };
}

/** One series of a histogram, in the same way as counterSeries. */
export function histogramSeries(histogram: prom.Histogram, labels: Labels): HistogramSeries {
  let record: HistogramRecord | null = null;
  let bounds: readonly number[] = [];
  /**
   * The bounds as strings, as the record has them. Converting a number to a string would take longer than everything
   * else.
   */
  let names: readonly string[] = [];
  return {
    observe(value) {
      if (record === null || !Number.isFinite(value)) {
        histogram.observe(labels, value);
        record = recordOf<HistogramRecord>(
          histogram,
          labels,
          ({ sum, count }) => typeof sum === 'number' && typeof count === 'number',
        );
        names = Object.keys(record?.bucketValues ?? {}).toSorted((a, b) => Number(a) - Number(b));
        bounds = names.map(Number);
        return;
      }
      let at = 0;
      while (at < bounds.length && value > bounds[at]!) at++;
      if (at < names.length) record.bucketValues[names[at]!]! += 1;
      record.sum += value;
      record.count += 1;
    },
  };
}

function recordOf<R extends { readonly labels: Labels }>(
  metric: object,
  labels: Labels,
  isOne: (record: R) => boolean,
): R | null {
  const { hashMap } = metric as { readonly hashMap?: Readonly<Record<string, R>> };
  const record = Object.values(hashMap ?? {}).find((record) => sameLabels(record.labels, labels));
  return record && isOne(record) ? record : null;
}

function sameLabels(one: Labels, other: Labels): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
