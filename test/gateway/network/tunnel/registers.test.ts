import { describe, expect, test } from 'vitest';
import { createHash } from 'node:crypto';
import { registrationText } from '../../../../src/gateway/network/tunnel-wire.ts';
import { dialPeer, documentOf } from '../../../support/tunnel-peer.ts';
import { DOMAIN, evmWallet, solanaWallet } from '../../../support/wallets.ts';
import { startWorld, textOf, until } from './tunnel-world.ts';

const ECHO = {
  serve: (stream: import('node:http2').ServerHttp2Stream) => (
    stream.respond({ ':status': 200 }),
    void stream.end('ok')
  ),
};

test.each([
  ['Solana', solanaWallet],
  ['EVM', evmWallet],
])(
  'a proxy with a wallet of %s is welcomed, registers with its signature, and can be called',
  async (_kind, makeWallet) => {
    const world = await startWorld();
    const wallet = makeWallet();
    const peer = await world.dial({ wallet, ...ECHO });
    expect(peer.welcome).toEqual({
      type: 'welcome',
      payouts: expect.stringMatching(/over no chain.*agree on it before you sell/) as string,
      provider: wallet.providerId,
      account: wallet.namespace === 'eip155' ? wallet.accountId.toLowerCase() : wallet.accountId,
      version: '1.2.3',
      challenge: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{40,44}$/),
    });
    expect(world.catalog.offers()).toEqual([]);
    expect(await peer.register()).toEqual({ type: 'registered', revision: 1, services: ['peer/model'] });
    expect(world.catalog.offers().map(({ id, endpoint }) => ({ id, endpoint }))).toEqual([
      {
        id: `model/${wallet.providerId}:peer/model`,
        endpoint: { kind: 'tunnel', provider: wallet.providerId, basePath: '/model/peer%2Fmodel' },
      },
    ]);
    expect((await textOf(world.send(wallet.providerId))).text).toBe('ok');
    expect(world.told).toEqual(['connected', 'registered 1']);
  },
);

test('a proxy with an API key registers without a signature', async () => {
  const world = await startWorld();
  const peer = await world.dial({ headers: { authorization: `Bearer ${await world.key()}` }, ...ECHO });
  expect(peer.welcome).toMatchObject({
    account: 'tollgate:local:acme',
    provider: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{43,44}$/),
  });
  expect(await peer.register()).toMatchObject({ type: 'registered' });
  expect((await textOf(world.send(peer.welcome.provider))).text).toBe('ok');
});

test('the network that a proxy dials from is known while it is connected', async () => {
  const world = await startWorld();
  const peer = await world.peer(ECHO);
  const located = world.registry.locate(peer.welcome.provider);
  const { connection } = located as { connection: string };
  expect(world.tunnels.network(connection)).toBe('127.0.0.1');
  peer.kill();
  await until(() => world.told.some((one) => one.startsWith('left')));
  expect(world.tunnels.network(connection)).toBeNull();
});

test('a document with problems is refused as a whole with all of them, and what was registered before stays', async () => {
  const world = await startWorld();
  const peer = await world.peer(ECHO);
  const bad = { version: 1, models: [{ ...documentOf().models[0], pricing: { prompt: '-1', completion: 'NaN' } }] };
  const answer = await peer.register(bad);
  expect(answer).toMatchObject({ type: 'refused', message: expect.stringContaining('2 problems') });
  expect((answer as Extract<typeof answer, { type: 'refused' }>).problems.map(({ key }) => key)).toEqual([
    'models[0].pricing.prompt',
    'models[0].pricing.completion',
  ]);
  expect(await peer.register('no JSON')).toMatchObject({ type: 'refused', problems: [{ key: 'document' }] });
  expect(world.catalog.offers()).toHaveLength(1);
  expect((await textOf(world.send(peer.welcome.provider))).text).toBe('ok');
  expect(await peer.register(documentOf('peer/other', 'Peer 1'))).toMatchObject({
    type: 'registered',
    revision: 2,
    services: ['peer/other'],
  });
});

test('more services than one provider may have are refused', async () => {
  const world = await startWorld({ servicesMax: 2 });
  const peer = await world.dial();
  const [model] = documentOf().models;
  expect(
    await peer.register({ version: 1, models: [1, 2, 3].map((n) => ({ ...model, name: `m${n}/model` })) }),
  ).toMatchObject({ type: 'refused' });
});

describe('services of strangers together', () => {
  const services = (...names: string[]) => ({
    version: 1,
    models: names.map((name) => ({
      ...documentOf().models[0],
      name,
      provider_name: `Seller of ${names[0]!.slice(1, 2)}`,
    })),
  });

  test('a network lists no more than it leaves free, until what it listed is gone', async () => {
    const world = await startWorld({ strangersServicesMax: 5, graceMs: 0 });
    const [one, two, three] = [await world.dial(), await world.dial(), await world.dial()];
    expect(await one.register(services('m1/model', 'm2/model'))).toMatchObject({ type: 'registered' });
    expect(await two.register(services('m3/model'))).toMatchObject({ type: 'registered' });
    const refused = { type: 'refused', problems: [{ key: 'services', wrong: expect.stringContaining('no room') }] };
    expect(await three.register(services('m4/model'))).toMatchObject(refused);
    // What was registered before stays, and counts as before.
    expect(await two.register(services('m3/model', 'm4/model'))).toMatchObject(refused);
    expect(world.catalog.offers().map(({ service }) => service)).toEqual(['m1/model', 'm2/model', 'm3/model']);
    expect(await one.register(services('m1/model'))).toMatchObject({ type: 'registered' });
    expect(await two.register(services('m3/model', 'm4/model'))).toMatchObject({ type: 'registered' });
    two.kill();
    await until(() => world.catalog.offers().length === 1);
    const last = await world.dial();
    expect(await last.register(services('m5/model'))).toMatchObject({ type: 'registered' });
  });

  test('a registration that is refused for another reason takes no room', async () => {
    const world = await startWorld({ strangersServicesMax: 3 });
    await (await world.dial()).register(services('m1/model'));
    const other = await world.dial();
    const taken = { ...documentOf().models[0], name: 'm2/model', provider_name: 'Seller of 1' };
    expect(await other.register({ version: 1, models: [taken] })).toMatchObject({
      type: 'refused',
      problems: [{ key: 'provider_name' }],
    });
    expect(await (await world.dial()).register(services('m3/model'))).toMatchObject({ type: 'registered' });
  });

  test('providers that the operator names are no strangers', async () => {
    const wallets = [solanaWallet(), solanaWallet(), solanaWallet()];
    const providers = wallets.map(({ providerId }) => providerId);
    const world = await startWorld({ strangersServicesMax: 1, providers });
    for (const [at, wallet] of wallets.entries())
      expect(await (await world.dial({ wallet })).register(services(`m${at}/model`))).toMatchObject({
        type: 'registered',
      });
  });
});

test('a registration that was heard on another connection is refused on this one', async () => {
  const world = await startWorld();
  const wallet = solanaWallet();
  const first = await world.dial({ wallet });
  const document = JSON.stringify(documentOf());
  const digest = createHash('sha256').update(document).digest('hex');
  const signature = await wallet.sign(
    registrationText({ router: DOMAIN, provider: wallet.providerId, challenge: first.welcome.challenge, digest }),
  );
  const second = await world.dial({ wallet });
  expect(second.welcome.challenge).not.toBe(first.welcome.challenge);
  expect(await second.register(document, { signature })).toMatchObject({
    type: 'refused',
    problems: [{ key: 'signature' }],
  });
  expect(await first.register(document, { signature })).toMatchObject({ type: 'registered' });
});

test.each([
  ['of another wallet', async () => ({ signature: await solanaWallet().sign('x') }), 'signature'],
  ['that is none', async () => ({ signature: 'x' }), 'signature'],
  ['that is missing', async () => ({ signature: null }), 'signature'],
  ['for another router', async () => ({ router: 'elsewhere.test' }), 'router'],
])('a signature %s is refused', async (_what, fields, key) => {
  const world = await startWorld();
  const peer = await world.dial();
  expect(await peer.register(documentOf(), await fields())).toMatchObject({ type: 'refused', problems: [{ key }] });
  expect(world.catalog.offers()).toEqual([]);
  expect(world.tunnels.count().connections).toBe(0);
});

test('a stolen sign-in does not take the place of a proxy: that takes a signed registration', async () => {
  const world = await startWorld();
  const wallet = solanaWallet();
  const peer = await world.peer({ wallet, ...ECHO });
  // Whoever has the header of a sign-in and not the wallet.
  const thief = await world.dial({ wallet });
  expect(await thief.register(documentOf(), { signature: await solanaWallet().sign('x') })).toMatchObject({
    type: 'refused',
  });
  expect((await textOf(world.send(wallet.providerId))).text).toBe('ok');
  expect(peer.socket.readyState).toBe(peer.socket.OPEN);
});

test('a name that another provider has is refused, and the connection given up', async () => {
  const world = await startWorld();
  await (await world.dial()).register(documentOf('a/model', 'Acme'));
  const second = await world.dial();
  expect(await second.register(documentOf('b/model', 'acme'))).toMatchObject({
    type: 'refused',
    problems: [{ key: 'provider_name' }],
  });
  expect((await second.closed).reason).toMatch(/refused/);
  expect(world.registry.locate(second.welcome.provider)).toBeNull();
});

test('a registry that cannot be reached sends the proxy away to come back', async () => {
  const world = await startWorld({
    registry: () => ({ join: () => Promise.reject(new Error('no route to the database')) }),
  });
  const peer = await world.dial();
  await expect(peer.register()).rejects.toThrow(/1013/);
  expect((await peer.closed).reason).toMatch(/registry/);
  expect(world.told).toContain('failed');
});

test('a key that is revoked ends the tunnel that it opened', async () => {
  const world = await startWorld({ silenceMs: 400 });
  const text = await world.key();
  const peer = await world.peer({ headers: { 'x-api-key': text } });
  const [record] = await world.keys.list('tollgate:local:acme', { offset: 0, limit: 1 });
  await world.keys.delete('tollgate:local:acme', record!.hash);
  expect((await peer.closed).reason).toMatch(/no longer valid/);
});

test('a wallet whose account is closed is disconnected', async () => {
  const closed = new Set<string>();
  const world = await startWorld({ silenceMs: 400, isClosed: async (account) => closed.has(account) });
  const peer = await world.peer();
  closed.add(`solana:${peer.welcome.provider}`);
  expect((await peer.closed).reason).toMatch(/the account was closed/);
});

test('a look at a key begins only when the one before has ended', async () => {
  const answer = Promise.withResolvers<void>();
  const asked = { slow: 0, quick: 0 };
  const world = await startWorld({
    authenticate: async (authenticate, headers, address) => {
      const kind = headers['x-kind'] as keyof typeof asked;
      asked[kind] += 1;
      if (kind === 'slow' && asked.slow > 1) await answer.promise;
      return authenticate(headers, address);
    },
  });
  const keyed = async (kind: string) => ({ headers: { 'x-api-key': await world.key(), 'x-kind': kind } });
  await world.dial(await keyed('slow'));
  await world.dial(await keyed('quick'));
  // The dial, and a look that waits.
  await until(() => asked.quick >= 4);
  expect(asked.slow).toBe(2);
  answer.resolve();
  await until(() => asked.slow > 2);
});

test('a connection that registers nothing is given up', async () => {
  const world = await startWorld({ limits: { registerMs: 50 } });
  const peer = await dialPeer({ url: world.url, wallet: solanaWallet() });
  expect((await peer.closed).reason).toMatch(/registered nothing/);
});
