import { expect, onTestFinished, test } from 'vitest';
import { dialPeer, documentOf } from '../../../support/tunnel-peer.ts';
import { askTunnel, startTunnelSpine, TUNNEL_MODEL } from '../../../support/tunnel-spine.ts';
import { evmWallet, solanaWallet } from '../../../support/wallets.ts';

// A registration counts as a whole or not at all.

const good = documentOf(TUNNEL_MODEL, 'Careful');
const block = (fields: object) => ({ ...good.models[0]!, ...fields });
const bad = {
  version: 1,
  models: [
    good.models[0],
    block({ name: 'other/model' }),
    block({ name: '../escape', pricing: { prompt: '-1', completion: '1e30' } }),
    block({ name: 'third/model', context_length: 'much', surprise: true }),
  ],
};

for (const wallet of [solanaWallet(), evmWallet()])
  test(`one bad block refuses all of it, with every problem, and what was registered before stays (${wallet.namespace})`, async () => {
    const world = await startTunnelSpine();
    const { spine } = world;
    const peer = await dialPeer({
      url: spine.origin,
      wallet,
      serve(stream) {
        stream.resume();
        stream.respond({ ':status': 200, 'content-type': 'application/json' });
        stream.end(
          JSON.stringify({
            choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
        );
      },
    });
    onTestFinished(() => peer.kill());
    expect(await peer.register(good)).toEqual({ type: 'registered', revision: 1, services: [TUNNEL_MODEL] });
    const listing = await (await spine.get('/models')).text();

    const refused = await peer.register(bad);
    if (refused.type !== 'refused') throw new Error(`the gateway answered ${JSON.stringify(refused)}`);
    expect(refused.problems.map(({ key }) => key).sort()).toEqual([
      'models[2].name',
      'models[2].pricing.completion',
      'models[2].pricing.prompt',
      'models[3].context_length',
      'models[3].surprise',
    ]);
    for (const { wrong, right } of refused.problems) expect([wrong, right].every((text) => text.length > 0)).toBe(true);
    expect(await (await spine.get('/models')).text()).toBe(listing);
    expect(await world.ownPage('/services', wallet)).toMatchObject({
      connected: true,
      revision: 1,
      services: [{ name: TUNNEL_MODEL }],
    });
    expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(200);

    // It may do better on the same connection.
    expect(await peer.register({ version: 1, models: [good.models[0], block({ name: 'other/model' })] })).toMatchObject(
      {
        type: 'registered',
        revision: 2,
      },
    );
    expect(await world.endpoints('other/model')).toHaveLength(1);
  });

test('a bad first registration leaves an older connection of the provider where it is', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const wallet = solanaWallet();
  const { proxy, upstream } = await world.supply('Careful', { wallet });
  const peer = await dialPeer({ url: spine.origin, wallet });
  onTestFinished(() => peer.kill());
  expect((await peer.register(bad)).type).toBe('refused');
  const response = await spine.post('/chat/completions', askTunnel('hello'));
  expect(response.status).toBe(200);
  await response.text();
  expect(upstream.log).toHaveLength(1);
  expect(proxy.lines.filter(({ level }) => level === 'error')).toEqual([]);
  expect(await world.endpoints()).toMatchObject([{ provider_id: wallet.providerId, health: 'healthy' }]);
});

test('a provider that never registered well is not listed at all', async () => {
  const world = await startTunnelSpine();
  const wallet = solanaWallet();
  const peer = await dialPeer({ url: world.spine.origin, wallet });
  onTestFinished(() => peer.kill());
  expect((await peer.register(bad)).type).toBe('refused');
  expect((await world.spine.get(`/providers/${wallet.providerId}`)).status).toBe(404);
  expect(await world.endpoints('other/model')).toBeNull();
  expect(await world.ownPage('/services', wallet)).toMatchObject({ connected: false, revision: 0, services: [] });
});

test('a signature by another wallet, for another router, or for another connection is refused', async () => {
  const world = await startTunnelSpine();
  const wallet = solanaWallet();
  const peer = await dialPeer({ url: world.spine.origin, wallet });
  onTestFinished(() => peer.kill());
  const foreign = await solanaWallet().sign('anything');
  expect(await peer.register(good, { signature: foreign })).toMatchObject({
    type: 'refused',
    problems: [{ key: 'signature' }],
  });
  expect(await peer.register(good, { signature: null })).toMatchObject({
    type: 'refused',
    problems: [{ key: 'signature' }],
  });
  expect(await peer.register(good, { router: 'elsewhere.test' })).toMatchObject({
    type: 'refused',
    problems: [{ key: 'router' }],
  });
  expect(await peer.register(good, { challenge: 'of another connection' })).toMatchObject({
    type: 'refused',
    problems: [{ key: 'signature' }],
  });
  expect(await world.endpoints()).toBeNull();
  expect((await peer.register(good)).type).toBe('registered');
});
