import type { FastifyPluginAsync } from 'fastify';
import type { Offer } from './call.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { Health } from './routing/router.ts';

export interface ProviderDeps {
  readonly catalog: Pick<Catalog, 'offers'>;
  readonly health: Pick<Health, 'available' | 'stats'>;
}

/** A provider as everybody sees it: what it serves and how well, by this gateway's own calls. */
interface ProviderView {
  readonly id: string;
  readonly name: string;
  readonly services: number;
  readonly primitives: readonly string[];
  readonly status: 'healthy' | 'degraded' | 'down';
  readonly uptime: number | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
}

const providerSchema = {
  type: 'object',
  required: ['id', 'name', 'services', 'primitives', 'status', 'uptime', 'requests', 'flags'],
  properties: {
    id: { type: 'string', description: 'Public key. Pin a call to this provider with `<id>:<service name>` as the model' },
    name: { type: 'string' },
    services: { type: 'integer', description: 'Number of services it offers' },
    primitives: { type: 'array', items: { type: 'string', enum: ['model', 'tool', 'agent', 'image', 'video'] } },
    status: {
      type: 'string',
      enum: ['healthy', 'degraded', 'down'],
      description: '`healthy`: all of its services can be called; `degraded`: some cool down after a failure; `down`: all do',
    },
    uptime: { type: ['number', 'null'], description: "Share of the last hour's calls that did not fail, 0 to 1; null when there were none" },
    requests: { type: 'integer', description: 'Calls of the last hour' },
    flags: {
      type: 'object',
      additionalProperties: { type: 'integer' },
      description: 'How often its replies broke the rules, by rule, such as `usage_missing`',
    },
  },
} as const;

/** `GET /providers`: who serves, and how well. Public. Register it under `/api/v1`. */
export function providerRoutes({ catalog, health }: ProviderDeps): FastifyPluginAsync {
  return async (app) => {
    app.get(
      '/providers',
      {
        schema: {
          summary: 'List providers',
          description: 'Every provider that offers a service here, with its health as this gateway sees it. No credential is needed.',
          tags: ['Models'],
          security: [],
          response: {
            200: {
              description: 'Providers, by name',
              type: 'object',
              required: ['data'],
              properties: { data: { type: 'array', items: providerSchema } },
            },
          },
        },
      },
      () => ({ data: viewProviders(catalog.offers(), health) }),
    );
  };
}

function viewProviders(offers: readonly Offer[], health: ProviderDeps['health']): readonly ProviderView[] {
  return [...Map.groupBy(offers, (offer) => offer.provider.id).values()]
    .map((group) => viewProvider(group, health))
    .sort((a, b) => a.name.localeCompare(b.name, 'en') || a.id.localeCompare(b.id, 'en'));
}

function viewProvider(offers: readonly Offer[], health: ProviderDeps['health']): ProviderView {
  const { id, name } = offers[0]!.provider;
  const flags = new Map<string, number>();
  let available = 0;
  let requests = 0;
  let failures = 0;
  for (const offer of offers) {
    const stats = health.stats(offer);
    if (health.available(offer)) available++;
    requests += stats.lastHour.requests;
    failures += stats.lastHour.failures;
    for (const [flag, count] of Object.entries(stats.flags)) flags.set(flag, (flags.get(flag) ?? 0) + count);
  }
  return {
    id,
    name,
    services: offers.length,
    primitives: [...new Set(offers.map((offer) => offer.primitive))].sort(),
    status: available === offers.length ? 'healthy' : available > 0 ? 'degraded' : 'down',
    uptime: requests === 0 ? null : 1 - failures / requests,
    requests,
    flags: Object.fromEntries(flags),
  };
}
