import { aggregate } from './prom.ts';
import { textOf } from './scraped-text.ts';

/** One metric of one process with all its series, from Metrics.snapshot. It can be sent as JSON. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
}

/** Merges the metrics of several processes. */
interface MergedMetrics {
  /** Takes the metrics of a process. They replace its earlier ones. */
  take(process: number, snapshot: readonly MetricSnapshot[]): void;
  /**
   * A process has ended. Its last known counters stay in the sums, because a falling counter would look like a restart
   * of everything.
   */
  retire(process: number): void;
  /** The merged metrics in the Prometheus text format. Gauges are added up too, unless they have another aggregator. */
  text(): Promise<string>;
}

const GROWS: ReadonlySet<string> = new Set(['counter', 'histogram']);

/**
 * Converts metrics of prom-client. Its TypeScript types declare the kind of a metric as a number, but it is a string.
 */
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
