import { expect, test } from 'vitest';
import { askTunnel, startTunnelSpine, TUNNEL_MODEL, until, type TunnelSpine } from '../../../support/tunnel-spine.ts';

// A provider that does not come back: still listed for the grace time, and then not any more.

async function listed({ spine }: TunnelSpine): Promise<readonly string[]> {
  const { data } = (await (await spine.get('/models')).json()) as {
    data: { id: string; providers: { name: string }[] }[];
  };
  return data.find(({ id }) => id === TUNNEL_MODEL)?.providers.map(({ name }) => name) ?? [];
}
async function providers({ spine }: TunnelSpine): Promise<readonly { name: string; status: string }[]> {
  const { data } = (await (await spine.get('/providers')).json()) as {
    data: { name: string; status: string; reached: string }[];
  };
  return data.filter(({ reached }) => reached === 'tunnel').map(({ name, status }) => ({ name, status }));
}

test('in its grace time it is listed as away, and cannot be called', async () => {
  // So long that no machine is too slow for what is asked within it.
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 0\ngrace_ms = 600000');
  const goes = await world.supply('Goes');
  await world.supply('Stays');
  const call = (model: string) => world.spine.post('/chat/completions', askTunnel('hello', { model }));
  goes.proxy.kill();
  await until(async () => (await world.endpoints())?.some(({ health }) => health === 'away') ?? false);
  expect(await listed(world)).toEqual(['Goes', 'Stays']);
  const pinned = await call(goes.pinned);
  expect([pinned.status, await pinned.json()]).toMatchObject([503, { error: { type: 'provider_unavailable' } }]);
  const routed = await call(TUNNEL_MODEL);
  expect([routed.status, routed.headers.get('x-provider')]).toEqual([200, 'Stays']);
  await routed.text();
});

test('it vanishes after the grace time; when it returns it is as before', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 0\ngrace_ms = 800');
  const { spine } = world;
  const [goes, stays] = [await world.supply('Goes'), await world.supply('Stays')];
  expect(await listed(world)).toEqual(['Goes', 'Stays']);
  const created = (await world.ownPage<{ services: { listed_since: string }[] }>('/services', goes.proxy.wallet))
    .services[0]!.listed_since;
  const call = (model: string) => spine.post('/chat/completions', askTunnel('hello', { model }));
  // A stranger that was never called would be forgotten.
  expect((await call(goes.pinned)).status).toBe(200);

  goes.proxy.kill();
  const goneAt = performance.now();
  await until(async () => (await listed(world)).length === 1);
  expect(performance.now() - goneAt).toBeGreaterThan(700);
  expect(await listed(world)).toEqual(['Stays']);
  expect(await providers(world)).toEqual([{ name: 'Stays', status: 'untried' }]);
  expect((await spine.get(`/providers/${goes.proxy.id}`)).status).toBe(404);
  // Whoever calls it is to come back, and not to take the name for mistyped.
  const away = await call(goes.pinned);
  expect([away.status, await away.json()]).toMatchObject([
    503,
    {
      error: {
        type: 'provider_unavailable',
        message: `The last provider of ${goes.pinned} has disconnected. If it comes back, that takes seconds: retry a few times, then take another service`,
      },
    },
  ]);
  // Its own page still knows what it had registered.
  expect(await world.ownPage('/services', goes.proxy.wallet)).toMatchObject({
    connected: false,
    revision: 1,
    services: [{ name: TUNNEL_MODEL, status: 'away' }],
  });

  stays.proxy.kill();
  await until(async () => (await listed(world)).length === 0);
  expect((await call(TUNNEL_MODEL)).status).toBe(503);

  await world.supply('Goes', { wallet: goes.proxy.wallet, upstream: goes.upstream });
  expect(await listed(world)).toEqual(['Goes']);
  const back = await call(goes.pinned);
  expect(back.status).toBe(200);
  await back.text();
  expect(await world.ownPage('/services', goes.proxy.wallet)).toMatchObject({
    connected: true,
    revision: 1,
    services: [{ listed_since: created }],
  });
});
