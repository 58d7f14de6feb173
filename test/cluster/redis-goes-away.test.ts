import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { parseUsd } from '#billing/amounts';
import { adHoc } from '../support/ad-hoc.ts';
import { endpointsOf, reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { burst, isShared, whileShared } from '../support/rate-burst.ts';
import { startRedis, type Redis } from '../support/redis.ts';
import type { Spine } from '../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../support/wallets.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// Redis is stopped, frozen and flushed while callers with keys and wallets use a provider that dialled in, at both
// of two gateways. No call fails for it, every call's money is right, rates are counted by each gateway for a
// while; nonces and presence go on as if nothing were.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const LIMIT = DEEP ? 80 : 40;
const BACK_MS = 5_000;
const CALLERS = DEEP ? 6 : 3;
/** Between two calls of a caller: without it, they take all of a processor by day. */
const [PAUSE_MS, IDENTITIES] = DEEP ? [0, 160] : [20, 80];
const CREDIT = '1';

let redis: Redis;
let cluster: Cluster<Spine>;
let gateways: readonly [Spine, Spine];
let proxy: DialledIn;
beforeAll(async () => {
  redis = await startRedis();
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    redisUrl: redis.url,
    size: 2,
    toml: `[limits]\nrequests_per_minute = ${LIMIT - 20}\nburst = 20\n${SIGN_IN_TOML}`,
  });
  gateways = cluster.gateways as unknown as readonly [Spine, Spine];
  proxy = await dialIn({ router: gateways[0].origin, services: offeredModel({ url: cluster.provider.url }) });
  await reachable([gateways[1].origin], 'tunnel/model');
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
  await redis?.stop();
});

interface Identity {
  readonly account: string;
  readonly headers: Record<string, string>;
}
/** Half of them keys, half of them wallets. So many that none comes near its rate. */
const openIdentities = () =>
  Promise.all(
    Array.from({ length: IDENTITIES }, async (_, index): Promise<Identity> => {
      if (index % 2 === 0) {
        const { account, key } = await gateways[0].tenant(`load-${index}`, CREDIT);
        return { account, headers: { authorization: `Bearer ${key}` } };
      }
      const wallet = solanaWallet();
      const amount = parseUsd(CREDIT);
      await gateways[0].app.ledger.transfer({
        id: `load-${index}`,
        from: treasuryOf('operator'),
        to: escrowOf(wallet.account),
        amount,
        memo: '',
      });
      return { account: wallet.account, headers: await signInHeaders(wallet) };
    }),
  );

/** Callers with hardly a pause until `stop`, which resolves with what each account should have paid, and each call. */
function load(identities: readonly Identity[]) {
  const costs = new Map<string, number>();
  const paid = new Map<string, number>();
  const failures: string[] = [];
  let stopped = false;
  let turn = 0;
  const caller = async () => {
    while (!stopped) {
      const index = turn++;
      const { account, headers } = identities[index % identities.length]!;
      const tokens = 1 + (index % 9);
      const response = await fetch(`${gateways[index % 3 === 0 ? 0 : 1].url}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({
          model: 'tunnel/model',
          messages: [{ role: 'user', content: `!tokens:${tokens}` }],
          max_tokens: 20,
          stream: index % 2 === 0,
        }),
      });
      const text = await response.text();
      const prompt = /"prompt_tokens":(\d+)/.exec(text)?.[1];
      if (response.status !== 200 || prompt === undefined || text.includes('"error"'))
        failures.push(`${response.status} ${text.slice(0, 300)}`);
      else {
        const cost = Number(prompt) + 2 * tokens;
        costs.set(response.headers.get('x-generation-id')!, cost);
        paid.set(account, (paid.get(account) ?? 0) + cost);
      }
      await pause(PAUSE_MS);
    }
  };
  const callers = Array.from({ length: CALLERS }, caller);
  return {
    failures,
    costs,
    async stop() {
      stopped = true;
      await Promise.all(callers);
      return { costs, paid };
    },
  };
}

const freshCaller = async (name: string) => {
  const { key } = await gateways[0].tenant(name, '1');
  return () => ({ authorization: `Bearer ${key}` });
};
async function expectShared(name: string): Promise<void> {
  await whileShared(gateways, async (attempt) => {
    const { passed, seconds } = await burst(gateways, 2 * LIMIT, await freshCaller(`${name}-${attempt}`));
    expect(passed).toBeGreaterThanOrEqual(LIMIT);
    expect(passed).toBeLessThanOrEqual(LIMIT + Math.ceil(seconds));
  });
}
/** Each gateway lets its own share through. */
async function expectLocal(name: string): Promise<void> {
  const { passed, seconds } = await burst(gateways, 3 * LIMIT, await freshCaller(name));
  expect(passed).toBeGreaterThanOrEqual(2 * LIMIT);
  expect(passed).toBeLessThanOrEqual(2 * (LIMIT + Math.ceil(seconds)));
}

async function expectNoncesAreSingleUse(): Promise<void> {
  const { nonce } = (await (await fetch(`${gateways[0].url}/auth/nonce`)).json()) as { nonce: string };
  const headers = await signInHeaders(solanaWallet(), { nonce });
  const statuses = await Promise.all(
    Array.from(
      { length: 10 },
      async (_, index) =>
        (
          await fetch(`${gateways[index % 2]!.url}/keys`, {
            method: 'POST',
            headers: { ...headers, 'content-type': 'application/json' },
            body: '{}',
          })
        ).status,
    ),
  );
  expect(statuses.filter((status) => status === 201)).toHaveLength(1);
  expect(statuses.filter((status) => status === 401)).toHaveLength(9);
}

async function expectPresenceIsKnown(name: string): Promise<void> {
  const other = await dialIn({
    router: gateways[1].origin,
    services: offeredModel({ url: cluster.provider.url, name: `${name}/model`, provider: name }),
  });
  expect(await reachable([gateways[0].origin], `${name}/model`)).toBeLessThan(atThisLoad(1_000));
  await other.close();
  const away = async () =>
    (await endpointsOf(gateways[0].origin, `${name}/model`)).every(({ health }) => health === 'away');
  expect(await until(away, 'it is known to be away')).toBeLessThan(atThisLoad(1_000));
}

test('no call fails, no money is wrong, and rates are shared again within 5 s', async () => {
  const identities = await openIdentities();
  const running = load(identities);
  const back: string[] = [];
  await expectShared('before');

  const outages = [
    ['killed', () => redis.kill9(), () => redis.restart()],
    ['frozen', async () => redis.freeze(), async () => redis.thaw()],
  ] as const;
  for (const [name, end, mend] of outages) {
    await end();
    try {
      await expectLocal(name);
      await expectNoncesAreSingleUse();
      await expectPresenceIsKnown(name);
    } finally {
      await mend();
    }
    const ms = await until(() => isShared(gateways), 'limits are shared again', BACK_MS);
    back.push(`${name}: shared again after ${Math.round(ms)} ms`);
    await expectShared(`after-${name}`);
  }
  await redis.flush();
  await expectShared('flushed');

  const { costs, paid } = await running.stop();
  console.log(`  ${costs.size} calls; ${back.join('; ')}`);
  expect(running.failures).toEqual([]);
  expect(await gateways[0].faults()).toEqual([]);
  const rows = await gateways[0].app.database.query(adHoc("SELECT id, charged FROM locks WHERE state = 'settled'"));
  const charged = new Map(rows.map((row) => [row['id'] as string, Number(row['charged'])]));
  for (const [id, cost] of costs) expect(charged.get(id), id).toBe(cost);
  for (const { account } of identities) {
    const { available } = (await gateways[0].app.ledger.balance(escrowOf(account)))!;
    expect(parseUsd(CREDIT) - available, account).toBe(BigInt(paid.get(account) ?? 0));
  }
});
