import { expect, test } from 'vitest';
import { offeredModel } from '../../../support/dial-in.ts';
import { startTunnelRouter } from '../../../support/tunnel-router.ts';
import { dialIn } from '../../../support/dial-in.ts';
import { askTunnel, readStream, startTunnelSpine, TUNNEL_MODEL, until } from '../../../support/tunnel-spine.ts';
import { onTestFinished } from 'vitest';

// A provider changes its file while its proxy runs: new offers over the same connection, and no call is lost.

const OTHER = 'tunnel/other';

async function world() {
  const spine = await startTunnelSpine();
  const upstream = await spine.upstream();
  const block = (prompt: number, name = TUNNEL_MODEL) =>
    offeredModel({ url: upstream.url, provider: 'Live', name, prompt, completion: prompt });
  const call = async (model: string, more: object = {}) => {
    const response = await spine.spine.post('/chat/completions', askTunnel('!tokens:5', { model, ...more }));
    await response.text();
    return response;
  };
  const costOf = async (response: Response) => {
    const { cost_micro_usdc: cost } = await spine.spine.generation(response.headers.get('x-generation-id'));
    return cost;
  };
  const proxy = await spine.dialIn({ services: block(100) });
  return { ...spine, upstream, block, call, costOf, proxy };
}

test('a new price holds from the next call on, a service comes and another goes, over one connection', async () => {
  const { proxy, block, call, costOf, upstream, endpoints } = await world();
  const cheap = await costOf(await call(TUNNEL_MODEL));
  expect(await proxy.reload(block(200) + block(100, OTHER))).toMatchObject({ kind: 'registered' });
  expect(await costOf(await call(TUNNEL_MODEL))).toBe(2 * cheap);
  expect(await costOf(await call(OTHER))).toBe(cheap);

  expect(await proxy.reload(block(100, OTHER))).toMatchObject({ kind: 'registered' });
  expect(await endpoints()).toBeNull();
  expect((await call(TUNNEL_MODEL)).status).toBe(404);
  expect((await call(OTHER)).status).toBe(200);
  expect(upstream.log).toHaveLength(4);
  const told = proxy.lines.map(({ msg }) => msg);
  expect(told.filter((msg) => msg === 'connected to the router')).toHaveLength(1);
  expect(told.filter((msg) => msg === 'the new services are registered')).toHaveLength(2);
});

test('running calls end as they began, at their price, also if their service is gone from the file', async () => {
  const { proxy, block, upstream, spine } = await world();
  const changed = Promise.withResolvers<void>();
  upstream.instruct({ stallAt: 1_000, stallUntil: changed.promise });
  const stream = await readStream(spine.post('/chat/completions', askTunnel('!tokens:20', { stream: true })));
  await stream.tokens(2);
  await proxy.reload(block(190));
  await proxy.reload(block(100, OTHER));
  expect(stream.text()).not.toContain('[DONE]');
  changed.resolve();
  expect(await stream.end).toContain('[DONE]');
  expect(await spine.generation(stream.response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 100 * (upstream.log[0]!.promptTokens + 20),
  });
});

test('a price that more than doubles has its notice period, as after a restart', async () => {
  const { proxy, block, call } = await world();
  await proxy.reload(block(250));
  expect((await call(TUNNEL_MODEL)).status).toBe(422);
  expect((await call(TUNNEL_MODEL, { max_cost: 1 })).status).toBe(200);
});

test('services that the gateway refuses change nothing', async () => {
  const { proxy, block, call, costOf } = await world();
  const before = await costOf(await call(TUNNEL_MODEL));
  expect(await proxy.reload(block(150) + block(150, 'tollgate/mine'))).toMatchObject({
    kind: 'refused',
    problems: [{ key: 'name', wrong: expect.stringContaining('a name of this gateway itself') }],
  });
  expect(await costOf(await call(TUNNEL_MODEL))).toBe(before);
  expect(await proxy.reload(block(150))).toMatchObject({ kind: 'registered' });
  expect(await costOf(await call(TUNNEL_MODEL))).toBe(1.5 * before);
});

test('while the gateway is away, the new services wait for it', async () => {
  const router = await startTunnelRouter();
  const block = (prompt: number) => offeredModel({ url: 'http://127.0.0.1:9/v1', provider: 'Live', prompt });
  const proxy = await dialIn({
    router: router.url,
    services: block(1),
    apiKey: 'key',
    ready: false,
  });
  onTestFinished(async () => {
    proxy.kill();
    await again?.stop();
  });
  let again: Awaited<ReturnType<typeof startTunnelRouter>> | null = null;
  await (await router.next()).accept();
  await proxy.logged('ready: calls can come');
  await router.stop();
  await proxy.logged('no connection to the router');
  expect(await proxy.reload(block(1.5))).toEqual({ kind: 'waiting' });
  expect(await proxy.reload(block(2))).toEqual({ kind: 'waiting' });
  again = await startTunnelRouter({ port: router.port });
  const end = await again.next();
  const priceOf = (document: string) =>
    (JSON.parse(document) as { models: { pricing: { prompt: string } }[] }).models[0]!.pricing.prompt;
  expect(priceOf((await end.accept()).document)).toBe('1');
  const next = await end.heard();
  expect(next.type === 'register' && priceOf(next.document)).toBe('2');
  end.say({ type: 'registered', revision: 2, services: [TUNNEL_MODEL] });
  await proxy.logged('the new services are registered');
});

test('many reloads at once do not end the connection', async () => {
  const { proxy, block, call } = await world();
  const prices = Array.from({ length: 7 }, (_, index) => 101 + index);
  await Promise.all(prices.map((price) => proxy.reload(block(price))));
  expect((await call(TUNNEL_MODEL)).status).toBe(200);
  expect(proxy.lines.filter(({ msg }) => msg === 'connected to the router')).toHaveLength(1);
  await until(async () => (await call(TUNNEL_MODEL)).status === 200);
});
