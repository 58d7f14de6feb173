import { expect, test } from 'vitest';
import { LISTED_AT, offer, startMarket, tunnelled } from './market-world.ts';

interface Provider {
  readonly id: string;
  readonly status: string;
  readonly uptime: number | null;
  readonly flags: object;
  readonly listings: readonly {
    readonly name: string;
    readonly status: string;
    readonly primitives: readonly string[];
  }[];
}

test('GET /providers lists who serves, what, since when, how it is reached, and how well', async () => {
  const { catalog, health, connected, get, data } = await startMarket();
  const small = tunnelled(offer({ provider: 'B' }), { createdAt: LISTED_AT + 1_000 });
  const large = tunnelled(offer({ provider: 'B', service: 'large' }), { displayName: 'B: Large' });
  const door = tunnelled(offer({ provider: 'B', service: 'large', primitive: 'tool' }));
  const other = offer({ provider: 'A' });
  catalog.replace('config', [small, large, door, other]);
  connected.add('id-B');
  for (let call = 0; call < 3; call++) health.succeeded(small, { firstByteMs: 1, durationMs: 2, completionTokens: 3 });
  health.unreachable(large);
  health.flagged(small, 'usage_missing');

  const response = await get('/providers');
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const text = await response.text();
  expect(JSON.parse(text)).toEqual({
    data: [
      {
        id: 'id-A',
        name: 'A',
        slug: 'a',
        privacy_policy_url: null,
        services: 1,
        primitives: ['model'],
        status: 'untried',
        reached: 'direct',
        listed_since: '1970-01-01T00:00:00.000Z',
        uptime: null,
        requests: 0,
        flags: {},
        listings: [{ name: 'acme/small', display_name: 'acme/small', primitives: ['model'], status: 'untried' }],
      },
      {
        id: 'id-B',
        name: 'B',
        slug: 'b',
        privacy_policy_url: null,
        services: 2,
        primitives: ['model', 'tool'],
        status: 'degraded',
        reached: 'tunnel',
        listed_since: '2026-01-02T03:04:05.678Z',
        uptime: 0.75,
        requests: 4,
        flags: { usage_missing: 1 },
        listings: [
          { name: 'acme/small', display_name: 'acme/small', primitives: ['model'], status: 'healthy' },
          { name: 'large', display_name: 'B: Large', primitives: ['model', 'tool'], status: 'degraded' },
        ],
      },
    ],
  });
  // Where it is served, and with which key, is nobody's business.
  expect(text).not.toContain('127.0.0.1');

  health.unreachable(other);
  expect((await data<Provider[]>('/providers'))[0]!.status).toBe('down');

  catalog.replace('config', []);
  expect(await (await get('/providers')).json()).toEqual({ data: [] });
});

test('a provider whose proxy is not connected is away, and is back when it is', async () => {
  const { catalog, health, connected, data } = await startMarket();
  const one = tunnelled(offer({ provider: 'B' }));
  catalog.replace('tunnel:id-B', [one]);
  health.unreachable(one);
  expect(await data('/providers')).toMatchObject([{ id: 'id-B', status: 'away', listings: [{ status: 'away' }] }]);
  expect(await data('/providers/id-B')).toMatchObject({
    status: 'away',
    listings: [{ doors: [{ status: 'away' }] }],
  });
  connected.add('id-B');
  expect(await data('/providers')).toMatchObject([{ status: 'down' }]);
  health.succeeded(one, { firstByteMs: 1, durationMs: 0, completionTokens: 3 });
  expect(await data('/providers')).toMatchObject([{ status: 'healthy' }]);
});

test('GET /providers/{id} shows its services with prices and figures, one door for each primitive', async () => {
  const { catalog, health, data } = await startMarket();
  const model = offer({ provider: 'B', service: 'a/b', pricing: { prompt: 1.5, completion: 2 } });
  const agent = {
    ...offer({ provider: 'B', service: 'a/b', primitive: 'agent', pricing: { call: 0.01 } }),
    description: 'Does it all.',
  };
  catalog.replace('config', [model, agent, offer({ provider: 'A' })]);
  health.succeeded(model, { firstByteMs: 10, durationMs: 1_000, completionTokens: 50 });
  health.flagged(model, 'usage_missing');
  const untouched = {
    uptime_last_1h: null,
    latency: null,
    throughput: null,
    requests: 0,
    flags: {},
    compliance: 1,
    status: 'untried',
  };
  expect(await data('/providers/id-B')).toMatchObject({
    id: 'id-B',
    name: 'B',
    services: 1,
    listings: [
      {
        name: 'a/b',
        display_name: 'a/b',
        description: 'Does it all.',
        primitives: ['agent', 'model'],
        doors: [
          { primitive: 'agent', pricing: { per_call: 0.01, prompt: null, completion: null }, ...untouched },
          {
            primitive: 'model',
            pricing: { prompt: 1.5, completion: 2, image: null },
            status: 'healthy',
            uptime_last_1h: 1,
            latency: { p50: 10, p95: 10 },
            throughput: { p50: 50 },
            requests: 1,
            flags: { usage_missing: 1 },
            compliance: 1 - 1 / 6,
          },
        ],
      },
    ],
  });
});

test('an EVM address is found in every spelling of its hex, a base58 key in its own alone', async () => {
  const { catalog, get } = await startMarket();
  const address = `0x${'ab12'.repeat(10)}`;
  const evm = { ...offer({ provider: 'E' }), provider: { id: address, name: 'E' } };
  const solana = { ...offer({ provider: 'S' }), id: 'other', provider: { id: 'SoLaNa', name: 'S' } };
  catalog.replace('config', [evm, solana]);
  for (const id of [address, `0x${'AB12'.repeat(10)}`, `0X${'aB12'.repeat(10)}`])
    expect((await get(`/providers/${id}`)).status).toBe(200);
  for (const id of ['SoLaNa']) expect((await get(`/providers/${id}`)).status).toBe(200);
  for (const id of ['solana', 'E', `${address}0`, '__proto__', '%00', 'x'.repeat(400)]) {
    const response = await get(`/providers/${id}`);
    expect(response.status, id).toBe(404);
    expect(await response.json()).toMatchObject({ error: { type: 'not_found', code: 404, param: 'id' } });
  }
});
