import { aggregate } from './prom.ts';
import { textOf } from './scraped-text.ts';

/** One metric of one process with all its series, as Metrics.snapshot gives it. It survives JSON. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
}

/** Metrics of several processes as those of one. */
interface MergedMetrics {
  /** Takes the figures of a process, in place of those that it gave before. */
  take(process: number, snapshot: readonly MetricSnapshot[]): void;
  /** A process is gone. Its last known counts stay: a counter that fell would look like a restart of everything. */
  retire(process: number): void;
  /** The Prometheus text format. Gauges are added up too, unless they say otherwise. */
  text(): Promise<string>;
}

const GROWS: ReadonlySet<string> = new Set(['counter', 'histogram']);

/** prom-client's own form of metrics. Its types say that the kind of a metric is a number; it is a text. */
export const asSnapshot = (metrics: object) => metrics as readonly MetricSnapshot[];

export function createMergedMetrics(): MergedMetrics {
  const running = new Map<number, readonly MetricSnapshot[]>();
  let retired: readonly MetricSnapshot[] = [];
  const merge = (snapshots: Iterable<readonly MetricSnapshot[]>) => aggregate([...snapshots]);
  return {
    take(process, snapshot) {
      running.set(process, snapshot);
    },
    retire(process) {
      const last = running.get(process);
      running.delete(process);
      if (!last) return;
      retired = asSnapshot(merge([retired, last.filter(({ type }) => GROWS.has(type))]).getMetricsAsArray());
    },
    text: () => textOf(merge([...running.values(), retired])),
  };
}
