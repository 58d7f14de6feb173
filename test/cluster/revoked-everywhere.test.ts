import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { endpointsOf, reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel } from '../support/dial-in.ts';
import { ask, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A key that is revoked or disabled at one gateway opens none a second later, though each of them has used it just now.

const WITHIN_MS = 1_000;
/** Tunnels ask again with their pings, four times in `tunnel.silence_ms`. */
const TUNNEL_WITHIN_MS = 2_500;

let cluster: Cluster<Spine>;
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl'), redisUrl: inject('redisUrl') });
});
afterAll(() => cluster?.stop());

const call = async (gateway: Spine, key: string) => {
  const response = await gateway.post('/chat/completions', ask('hello !tokens:1'), { authorization: `Bearer ${key}` });
  await response.text();
  return response.status;
};

test.each([
  ['deleted', 'DELETE', 401],
  ['disabled', 'PATCH', 401],
  ['limited to another service', 'PATCH', 403],
] as const)('%s', async (what, method, refused) => {
  const [first, ...others] = cluster.gateways as [Spine, Spine, Spine];
  const { key, hash, account } = await first.tenant(what.replaceAll(' ', '-'), '1');
  const owner = (await first.app.keys.create({ account, label: 'owner', kind: 'live' }))!;
  for (const gateway of cluster.gateways) expect(await call(gateway, key)).toBe(200);
  const authorization = `Bearer ${owner.text}`;
  const change = JSON.stringify(what === 'disabled' ? { disabled: true } : { allowed_services: ['another/model'] });
  const response = await fetch(
    `${first.url}/keys/${hash}`,
    method === 'DELETE'
      ? { method, headers: { authorization } }
      : { method, headers: { authorization, 'content-type': 'application/json' }, body: change },
  );
  expect(response.status).toBe(200);
  const told = performance.now();
  expect(await call(first, key)).toBe(refused);
  // How long after that each still lets a call begin.
  const last = await Promise.all(
    others.map(async (gateway) => {
      for (let accepted = 0; ;) {
        const begun = performance.now();
        if ((await call(gateway, key)) === refused) return accepted;
        accepted = begun - told;
      }
    }),
  );
  console.log(`  ${what}: accepted until ${last.map(Math.round).join(' and ')} ms after`);
  expect(Math.max(...last)).toBeLessThan(atThisLoad(WITHIN_MS));
  for (const gateway of cluster.gateways)
    for (let again = 0; again < 3; again += 1) expect(await call(gateway, key)).toBe(refused);
  expect(await first.faults()).toEqual([]);
});

test('a provider that dialled in with the key is gone everywhere', async () => {
  const [first, second] = cluster.gateways as [Spine, Spine, Spine];
  const { key, hash, account } = await first.tenant('provider', '1');
  const proxy = await dialIn({
    router: second.origin,
    apiKey: key,
    services: offeredModel({ url: cluster.provider.url }),
  });
  await reachable(
    cluster.gateways.map(({ origin }) => origin),
    'tunnel/model',
  );
  expect(await first.app.keys.delete(account, hash)).toBe(true);
  const gone = async ({ origin }: Spine) =>
    (await endpointsOf(origin, 'tunnel/model')).every(({ health }) => health === 'away');
  const ms = await until(
    async () => (await Promise.all(cluster.gateways.map(gone))).every(Boolean),
    'it is away everywhere',
  );
  console.log(`  the provider of a deleted key is away after ${Math.round(ms)} ms`);
  expect(ms).toBeLessThan(atThisLoad(TUNNEL_WITHIN_MS));
  await proxy.logged('the router does not accept the credential');
  await proxy.close();
});
