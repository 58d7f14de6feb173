import { expect, test } from 'vitest';
import { adHoc } from '../../../support/ad-hoc.ts';
import { earningsOf, escrowOf } from '#billing';
import { offeredModel } from '../../../support/dial-in.ts';
import { askTunnel, startTunnelSpine, TUNNEL_MODEL, until } from '../../../support/tunnel-spine.ts';

// A provider without a wallet comes with the API key of its account.

test('the account of the key earns, under an id of its own that is always the same', async () => {
  const world = await startTunnelSpine('[billing]\nfee_bps = 1000');
  const { spine } = world;
  const upstream = await world.upstream();
  const owner = await spine.tenant('earner', '0');
  const services = offeredModel({ url: upstream.url, provider: 'Keyed', prompt: 1, completion: 100 });
  const dial = () => world.dialIn({ apiKey: owner.key, services });
  const connected = await (await dial()).logged('connected to the router');
  const id = String(connected['provider']);
  expect(connected['account']).toBe(owner.account);
  expect(id).toMatch(/^[1-9A-HJ-NP-Za-km-z]{32,44}$/);

  let earned = 0n;
  for (const model of [TUNNEL_MODEL, `${id}:${TUNNEL_MODEL}`]) {
    const response = await spine.post('/chat/completions', askTunnel('!tokens:7', { model }));
    expect(response.status).toBe(200);
    await response.text();
    const generation = await spine.generation(response.headers.get('x-generation-id'));
    const cost = upstream.log.at(-1)!.promptTokens + 100 * 7;
    expect(generation).toMatchObject({ state: 'settled', provider: id, cost_micro_usdc: cost });
    earned += BigInt(cost) - BigInt(Math.floor(cost / 10));
  }
  const { available } = (await spine.app.ledger.balance(earningsOf(id)))!;
  expect(available).toBe(earned);
  // What it earns is not what it spends.
  expect((await spine.app.ledger.balance(escrowOf(owner.account)))?.available ?? 0n).toBe(0n);
  const own = await spine.get('/provider/earnings', { authorization: `Bearer ${owner.key}` });
  expect(await own.json()).toMatchObject({ provider: id, total_earned_micro_usdc: Number(earned) });
  // Nobody else's page shows it.
  expect(await (await spine.get('/provider/earnings')).json()).toMatchObject({ total_earned_micro_usdc: 0 });

  // Another key of the same account is the same provider, and takes its place.
  const other = await spine.tenant('earner', '0');
  const again = await world.dialIn({ apiKey: other.key, services });
  expect((await again.logged('connected to the router'))['provider']).toBe(id);
  expect(await world.endpoints()).toMatchObject([{ provider_id: id }]);
});

test('a restricted key may not provide, nor may that of a member of an organisation', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const services = offeredModel({ url: 'http://127.0.0.1:9/v1' });
  const limited = await spine.tenant('limited', '0', { limit: 1_000_000n });
  const narrowed = await spine.tenant('narrowed', '0', { allowedServices: ['test/model'] });
  const expiring = await spine.tenant('expiring', '0', { expiresAt: Date.now() + 3_600_000 });
  const soft = await spine.tenant('soft', '0', { limit: 1n, limitSoft: true });
  const slow = await spine.tenant('slow', '0', { requestsPerMinute: 1_000 });
  await spine.app.database.query(
    adHoc("INSERT INTO members (account, member, role, name, created_at) VALUES ($1, $2, 'member', 'x', 0)"),
    ['tollgate:local:org', limited.account],
  );
  const ofMember = await spine.tenant('org', '0', { member: limited.account });
  for (const { key } of [limited, narrowed, expiring, soft, slow, ofMember]) {
    const proxy = await world.dialIn({ apiKey: key, services, ready: false });
    expect(await proxy.closed).toBe(2);
    expect(await proxy.logged('this provider may not connect here')).toMatchObject({
      status: 403,
      message: expect.stringMatching(/cannot provide, nor can the key of a member/),
    });
  }
  expect(await world.endpoints()).toBeNull();

  // A key that is restricted while its tunnel is open.
  const free = await spine.tenant('free', '0');
  const proxy = await world.dialIn({ apiKey: free.key, services });
  await spine.app.keys.update(free.account, free.hash, { requestsPerMinute: 5 });
  expect(await proxy.closed).toBe(2);
});

test('the tunnel ends with its key, and no key of another account takes its place', async () => {
  const world = await startTunnelSpine('[tunnel]\nsilence_ms = 1000\nwait_ms = 0');
  const { spine } = world;
  const upstream = await world.upstream();
  const owner = await spine.tenant('earner', '0');
  const services = offeredModel({ url: upstream.url, provider: 'Keyed' });
  const proxy = await world.dialIn({ apiKey: owner.key, services, random: () => 0 });
  expect(await spine.app.keys.delete(owner.account, owner.hash)).toBe(true);
  expect(await proxy.logged('the router does not accept the credential')).toMatchObject({ status: 401 });
  await until(async () => (await world.endpoints())?.[0]?.health === 'away');
  expect((await spine.post('/chat/completions', askTunnel('hello'))).status).toBe(503);

  const stranger = await spine.tenant('stranger', '0');
  const taken = await world.dialIn({ apiKey: stranger.key, services, ready: false });
  expect(await taken.closed).toBe(1);
  expect(await taken.logged('the router refused')).toMatchObject({
    key: 'provider_name',
    wrong: 'is taken by another provider',
  });
});
