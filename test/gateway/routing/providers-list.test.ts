import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCatalog } from '../../../src/gateway/catalog/catalog.ts';
import { providerRoutes } from '../../../src/gateway/providers-routes.ts';
import { createHealth } from '../../../src/gateway/routing/health.ts';
import { clock, offer } from './offers.ts';

const catalog = createCatalog();
const health = createHealth({ now: clock(), cooldownMs: 30_000 });
let server: FastifyInstance;
let url: string;

beforeEach(async () => {
  server = Fastify();
  await server.register(providerRoutes({ catalog, health }), { prefix: '/api/v1' });
  url = `${await server.listen({ host: '127.0.0.1', port: 0 })}/api/v1/providers`;
});
afterEach(() => server.close());

test('GET /api/v1/providers lists who serves, and how well', async () => {
  const [small, large, tool] = [
    offer({ provider: 'B' }),
    offer({ provider: 'B', service: 'large' }),
    offer({ provider: 'B', service: 'search', primitive: 'tool' }),
  ];
  const other = offer({ provider: 'A' });
  catalog.replace('config', [small, large, tool, other]);
  for (let call = 0; call < 3; call++) health.succeeded(small, { firstByteMs: 1, durationMs: 2, completionTokens: 3 });
  health.failed(large);
  health.flagged(small, 'usage_missing');

  const response = await fetch(url);
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(JSON.parse(text)).toEqual({
    data: [
      { id: 'id-A', name: 'A', services: 1, primitives: ['model'], status: 'healthy', uptime: null, requests: 0, flags: {} },
      {
        id: 'id-B',
        name: 'B',
        services: 3,
        primitives: ['model', 'tool'],
        status: 'degraded',
        uptime: 0.75,
        requests: 4,
        flags: { usage_missing: 1 },
      },
    ],
  });
  // Where it is served, and with which key, is nobody's business.
  expect(text).not.toContain('127.0.0.1');

  health.failed(other);
  const after = (await (await fetch(url)).json()) as { data: { status: string }[] };
  expect(after.data[0]!.status).toBe('down');

  catalog.replace('config', []);
  expect(await (await fetch(url)).json()).toEqual({ data: [] });
});
