import Fastify from 'fastify';
import { onTestFinished } from 'vitest';
import { priceId, parseRates } from '#billing/amounts';
import type { Offer } from '../../../../src/server/catalog/offers.ts';
import { createCatalog } from '../../../../src/server/catalog/catalog.ts';
import { marketRoutes } from '../../../../src/console/pages/market/market-routes.ts';
import type { MarketDeps } from '../../../../src/console/pages/market/tool-pages.ts';
import type { Location } from '../../../../src/gateway/network/registry/presence.ts';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { toHttpError } from '../../../../src/server/http/error-table.ts';
import { GatewayError } from '../../../../src/foundation/errors.ts';
import { clock, offer } from '../../../gateway/call/routing/offers.ts';

export const LISTED_AT = Date.parse('2026-01-02T03:04:05.678Z');

/** An offer through the tunnel of its provider. */
export function tunnelled(of: Offer, more: Partial<Offer> = {}): Offer {
  return {
    ...of,
    endpoint: {
      kind: 'tunnel',
      provider: of.provider.id,
      basePath: `/${of.primitive}/${encodeURIComponent(of.service)}`,
    },
    createdAt: LISTED_AT,
    ...more,
  };
}

/** Prices of parts of an offer, in USD per unit of one meter. */
export function variants(
  of: Offer,
  meter: 'call' | 'image' | 'second',
  prices: Readonly<Record<string, number>>,
): Offer['variants'] {
  return Object.fromEntries(
    Object.entries(prices).map(([name, usd]) => {
      const rates = parseRates({ [meter]: usd });
      return [name, { id: priceId(of.provider.id, of.service, rates), rates }];
    }),
  );
}

/** The public pages on a real server, over a catalogue, a health and a presence that a test changes. */
export async function startMarket(more: Pick<MarketDeps, 'listings'> = {}) {
  const catalog = createCatalog();
  const now = clock();
  const health = createHealth({ now, cooldownMs: 30_000 });
  const connected = new Set<string>();
  const locate = (provider: string): Location | null =>
    connected.has(provider) ? { kind: 'here', connection: `to-${provider}` } : null;
  const server = Fastify({ routerOptions: { maxParamLength: 512 } });
  server.setErrorHandler((error, _request, reply) => {
    if (!(error instanceof GatewayError)) throw error;
    const { status, body } = toHttpError(error);
    void reply.code(status).send(body);
  });
  await server.register(
    marketRoutes({ catalog, health, registry: { locate }, prices: { find: async () => null }, now, ...more }),
    { prefix: '/api/v1' },
  );
  onTestFinished(() => server.close());
  const url = `${await server.listen({ host: '127.0.0.1', port: 0 })}/api/v1`;
  /** `later`: as much time passes before. A page may be a moment old. */
  const get = (path: string, headers: Record<string, string> = {}, later = 1_000) => {
    now.advance(later);
    return fetch(url + path, { headers });
  };
  return {
    catalog,
    now,
    health,
    connected,
    get,
    async data<T>(path: string): Promise<T> {
      return ((await (await get(path)).json()) as { data: T }).data;
    },
  };
}

export { offer };
