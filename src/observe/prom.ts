import { createRequire } from 'node:module';
import type * as prom from 'prom-client';

// The index of prom-client also loads its default metrics, a push gateway and the API of OpenTelemetry: 139 files.
// Metrics need only 8 of them.
const load = createRequire(import.meta.url);

export const Counter = load('prom-client/lib/counter.js') as typeof prom.Counter;
export const Gauge = load('prom-client/lib/gauge.js') as typeof prom.Gauge;
export const Histogram = load('prom-client/lib/histogram.js') as typeof prom.Histogram;
export const Registry = load('prom-client/lib/registry.js') as typeof prom.Registry;

/** Adds up the metrics of several processes. */
export const aggregate = (metrics: object[]): prom.Registry =>
  (load('prom-client/lib/cluster.js') as typeof prom.AggregatorRegistry).aggregate<prom.PrometheusContentType>(metrics);

/** The default metrics of prom-client, except CPU, which would load the API of OpenTelemetry. */
const OF_PROCESS = [
  'processStartTime',
  'osMemoryHeap',
  'processOpenFileDescriptors',
  'processMaxFileDescriptors',
  'eventLoopLag',
  'processResources',
  'processHandles',
  'processRequests',
  'heapSizeAndUsed',
  'heapSpacesSizeAndUsed',
  'version',
  'gc',
];

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
  for (const name of OF_PROCESS) {
    const add = load(`prom-client/lib/metrics/${name}.js`) as (registry: prom.Registry, options: object) => void;
    add(registry, { eventLoopMonitoringPrecision: 10 });
  }
  cpuSeconds(registry, 'process_cpu_user_seconds_total', 'Total user CPU time', ({ user }) => user);
  cpuSeconds(registry, 'process_cpu_system_seconds_total', 'Total system CPU time', ({ system }) => system);
  cpuSeconds(registry, 'process_cpu_seconds_total', 'Total CPU time', ({ user, system }) => user + system);
  return registry;
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
