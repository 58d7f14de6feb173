import type { FastifyInstance } from 'fastify';
import type { AdminGate } from '#auth';
import type { Metrics } from './metrics.ts';
import { shareText } from './scraped-text.ts';

interface MetricsRoutesOptions {
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
  /** `open`: everybody who can reach the gateway may read the metrics. */
  readonly access: 'admin' | 'open';
  /** Guards the route if access is `admin`. */
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
