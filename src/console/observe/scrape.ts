import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type * as prom from 'prom-client';
import type { AdminGate } from '#auth';
import { aggregate } from './prometheus.ts';

interface MetricsRoutesOptions {
  readonly metrics: { text(): Promise<string>; readonly contentType: string };
  /** `open`: everybody who can reach the gateway may read the metrics. */
  readonly access: 'admin' | 'open';
  readonly gate: AdminGate;
}

/** `GET /metrics` in the Prometheus text format. */
export function metricsRoutes({
  metrics,
  access,
  gate,
}: MetricsRoutesOptions): (app: FastifyInstance) => Promise<void> {
  const open = access === 'open';
  const text = shareText(metrics.text);
  return async (app) => {
    app.get(
      '/metrics',
      {
        schema: {
          tags: ['Operations'],
          security: open ? [] : [{ bearer: [] }],
          summary: 'Metrics',
          description:
            'Counters and histograms of this gateway, of all its workers together, in the Prometheus text format, named by the GenAI and MCP semantic conventions where they have a name. ' +
            'They are made at most once a second.',
          produces: ['text/plain'],
          response: { 200: { type: 'string' } },
        },
        ...(open ? {} : { onRequest: gate }),
      },
      async (_request, reply) =>
        reply
          .header('content-type', metrics.contentType)
          .header('cache-control', 'no-store')
          .send(await text()),
    );
  };
}

/** How long a text is shared, in milliseconds. */
const STANDS_MS = 1_000;

/**
 * Makes a text once for all callers that ask while it is made and for a second after that. After a failure the next
 * caller makes it again.
 */
export function shareText(make: () => Promise<string>): () => Promise<string> {
  let shared: Promise<string> | null = null;
  return () => {
    if (shared !== null) return shared;
    const making = make();
    shared = making;
    const forget = () => {
      if (shared === making) shared = null;
    };
    making.then(() => setTimeout(forget, STANDS_MS).unref(), forget);
    return making;
  };
}

/** All metrics of a registry as text, one in each turn of the event loop. */
export async function textOf(
  registry: Pick<prom.Registry, 'getMetricsAsArray' | 'getSingleMetricAsString'>,
): Promise<string> {
  const texts: string[] = [];
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name));
    await nextTurn();
  }
  return `${texts.join('\n\n')}\n`;
}

/** One metric of one process with all its series, from Metrics.snapshot. It can be sent as JSON. */
export interface MetricSnapshot {
  readonly name: string;
  readonly type: string;
}

/** Merges the metrics of several processes. */
interface MergedMetrics {
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
