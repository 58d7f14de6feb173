import { expect, onTestFinished, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startFaultProxy } from '../../../support/fault-proxy.ts';
import { askTunnel, startTunnelSpine, until, type TunnelSpine } from '../../../support/tunnel-spine.ts';

// A call that only one provider can serve, while that provider's proxy is on its way back.

/** A call has its lock and waits. */
const waits = (world: TunnelSpine, calls = 1) => until(async () => (await world.spine.locks()).length === calls);

test('a pinned call whose provider is reconnecting waits for it and is served', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 10000');
  const { spine } = world;
  const line = await startFaultProxy({ port: Number(new URL(spine.origin).port) });
  onTestFinished(() => line.stop());
  const { proxy, upstream, pinned } = await world.supply('Flaky', {
    router: `http://127.0.0.1:${line.port}`,
    random: () => 0.5,
  });
  const other = await world.supply('Steady');

  line.refuse = true;
  line.reset();
  await proxy.logged('no connection to the router');
  const call = spine.post('/chat/completions', askTunnel('!tokens:4', { model: pinned }));
  const stream = spine.post('/chat/completions', askTunnel('!tokens:4', { model: pinned, stream: true }));
  await waits(world, 2);
  expect(upstream.log).toHaveLength(0);
  line.heal();
  for (const response of await Promise.all([call, stream])) {
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
      state: 'settled',
      provider: proxy.id,
    });
  }
  expect(other.upstream.log).toHaveLength(0);
});

test('so it does however many calls broke with the connection', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 10000');
  const { spine } = world;
  const { proxy, upstream, pinned } = await world.supply('Busy');
  upstream.hold(new Promise(() => {}));
  const broken = Array.from({ length: 30 }, () =>
    spine.post('/chat/completions', askTunnel('hello', { model: pinned })),
  );
  await until(() => upstream.log.length === 30);
  proxy.kill();
  expect((await Promise.all(broken)).map(({ status }) => status)).toEqual(Array(30).fill(500));
  const asked = spine.post('/chat/completions', askTunnel('hello', { model: pinned }));
  await waits(world, 31);
  upstream.hold(null);
  await world.supply('Busy', { wallet: proxy.wallet, upstream });
  expect((await asked).status).toBe(200);
});

test('so does a routed call that nobody else serves', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 10000');
  const { spine } = world;
  const only = await world.supply('Only');
  only.proxy.kill();
  await until(async () => (await world.endpoints())?.[0]?.health === 'away');
  const asked = spine.post('/chat/completions', askTunnel('hello'));
  await waits(world);
  await world.supply('Only', { wallet: only.proxy.wallet, upstream: only.upstream });
  expect((await asked).status).toBe(200);
});

test('a routed call waits for whoever of many comes back first', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 10000');
  const { spine } = world;
  const many = await Promise.all(Array.from({ length: 8 }, (_, index) => world.supply(`Many ${index}`)));
  for (const { proxy } of many) proxy.kill();
  await until(async () => (await world.endpoints())!.every(({ health }) => health === 'away'));
  let ended = 0;
  const asked = Array.from({ length: 12 }, async (_, index) => {
    const response = await spine.post('/chat/completions', askTunnel('hello', { stream: index % 2 === 0 }));
    ended += 1;
    return [response.status, response.headers.get('x-provider'), await response.text()] as const;
  });
  await (await spine.get('/key')).text();
  expect(ended).toBe(0);
  const { proxy, upstream } = many[5]!;
  await world.dialIn({
    wallet: proxy.wallet,
    services: offeredModel({ url: upstream.url, provider: 'Many 5', prompt: 7, completion: 7 }),
  });
  for (const [status, provider] of await Promise.all(asked)) expect([status, provider]).toEqual([200, 'Many 5']);
  expect(upstream.log).toHaveLength(12);
});

test('and is told to come again, without a lock, when nobody does', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 150');
  const { spine } = world;
  for (const { proxy } of [await world.supply('One'), await world.supply('Two')]) proxy.kill();
  await until(async () => (await world.endpoints())!.every(({ health }) => health === 'away'));
  const begun = performance.now();
  const response = await spine.post('/chat/completions', askTunnel('hello'));
  expect(performance.now() - begun).toBeGreaterThan(140);
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await spine.locks()).toEqual([]);
});

test('a routed call that somebody else serves waits for nobody', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 60000\n[upstream]\ncooldown_ms = 0');
  const { spine } = world;
  const [gone, here] = [await world.supply('Gone', { prompt: 0.001, completion: 0.001 }), await world.supply('Here')];
  gone.proxy.kill();
  await until(async () => (await world.endpoints())?.some(({ health }) => health === 'away') ?? false);
  for (let index = 0; index < 5; index++) {
    const response = await spine.post(
      '/chat/completions',
      askTunnel('hello', { provider: { order: ['Gone', 'Here'] } }),
    );
    expect(response.headers.get('x-provider')).toBe('Here');
    await response.text();
  }
  expect(here.upstream.log).toHaveLength(5);
});

test('a call whose provider does not come back in time is told to come again, and costs nothing', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 150\n[upstream]\ncooldown_ms = 0');
  const { spine } = world;
  const { proxy, pinned } = await world.supply('Gone');
  proxy.kill();
  await until(async () => (await world.endpoints())?.[0]?.health === 'away');
  for (const stream of [false, true]) {
    const begun = performance.now();
    const response = await spine.post('/chat/completions', askTunnel('hello', { model: pinned, stream }));
    expect(performance.now() - begun).toBeGreaterThan(140);
    expect(response.status).toBe(503);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await response.json()).toMatchObject({
      error: { type: 'provider_unavailable', code: 503, message: expect.stringMatching(/not connected/) },
    });
  }
  await spine.quiet();
  for (const id of await spine.locks())
    expect(await spine.generation(id)).toMatchObject({ state: 'released', cost_micro_usdc: 0 });
  expect(await spine.locks()).toHaveLength(2);
  expect((await spine.balance()).available).toBe(100_000_000n);
});

test('the wait ends with the consumer: nothing is sent for one that left', async () => {
  const world = await startTunnelSpine('[tunnel]\nwait_ms = 60000\n[billing]\ndrain_ms = 50');
  const { spine } = world;
  const gone = await world.supply('Gone');
  gone.proxy.kill();
  await until(async () => (await world.endpoints())?.[0]?.health === 'away');
  const leaving = new AbortController();
  const asked = spine.post('/chat/completions', askTunnel('hello', { model: gone.pinned }), {}, leaving.signal);
  await waits(world);
  leaving.abort();
  await expect(asked).rejects.toThrow();
  await spine.quiet();
  const back = await world.supply('Gone', { wallet: gone.proxy.wallet, upstream: gone.upstream });
  await (await spine.post('/chat/completions', askTunnel('hello', { model: back.pinned }))).text();
  expect(gone.upstream.log).toHaveLength(1);
});
