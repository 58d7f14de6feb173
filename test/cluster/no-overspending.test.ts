import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Pool } from 'undici';
import { reachable, startMixedCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import type { GatewayHere } from '../support/gateway-here.ts';

// Three gateways in two processes, one account, many connections to each that race for an escrow that affords exactly
// so many calls: so many pass.

const [CONNECTIONS, AFFORDED, ATTEMPTS] =
  process.env['TOLLGATE_DEEP'] === '1' ? [64, 1_000, 1_000_000] : [24, 150, 1_200];
/**
 * 50 tokens at 2 USD per 1M, and prompts are free: what is locked is what is paid, so no refund makes room for
 * another call.
 */
const TOKENS = 50;
const COST = 2 * TOKENS;

let cluster: Cluster<GatewayHere>;
let proxy: DialledIn;
let pools: readonly Pool[];
beforeAll(async () => {
  cluster = await startMixedCluster({ postgresUrl: inject('postgresUrl'), redisUrl: inject('redisUrl') });
  const origins = cluster.gateways.map(({ baseUrl }) => baseUrl);
  // The calls of two gateways cross the third.
  proxy = await dialIn({
    router: origins[0]!,
    services: offeredModel({ url: cluster.provider.url, prompt: 0, completion: 2 }),
  });
  await reachable(origins, 'tunnel/model');
  pools = origins.map((origin) => new Pool(origin, { connections: CONNECTIONS, pipelining: 1 }));
});
afterAll(async () => {
  await Promise.all((pools ?? []).map((pool) => pool.destroy()));
  await proxy?.close();
  await cluster?.stop();
});

test(`of ${ATTEMPTS} calls ${AFFORDED} pass, and nothing is overspent`, { timeout: 3_600_000 }, async () => {
  const [first] = cluster.gateways as [GatewayHere];
  // One micro-USD too little for one more.
  const escrow = AFFORDED * COST + COST - 1;
  const { account, key } = await first.openAccount('crowd', (escrow / 1e6).toFixed(6));
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const bodies = [false, true].map((stream) =>
    JSON.stringify({
      model: 'tunnel/model',
      messages: [{ role: 'user', content: `!tokens:${TOKENS}` }],
      max_tokens: TOKENS,
      stream,
    }),
  );
  const statuses = new Map<number, number>();
  let left = ATTEMPTS;
  const connection = async (pool: Pool) => {
    while ((left -= 1) >= 0) {
      const response = await pool.request({
        method: 'POST',
        path: '/api/v1/chat/completions',
        headers,
        body: bodies[left % 2]!,
      });
      await response.body.dump({ limit: 1 << 20 });
      statuses.set(response.statusCode, (statuses.get(response.statusCode) ?? 0) + 1);
    }
  };
  let lowest = Infinity;
  let over = false;
  const watch = (async () => {
    while (!over) lowest = Math.min(lowest, (await balanceOf(first, account)).balance_micro_usdc);
  })();

  const begun = performance.now();
  await Promise.all(pools.flatMap((pool) => Array.from({ length: CONNECTIONS }, () => connection(pool))));
  const seconds = (performance.now() - begun) / 1_000;
  over = true;
  await watch;
  await until(async () => (await balanceOf(first, account)).locked_micro_usdc === 0, 'no lock is held');
  console.log(
    `  ${ATTEMPTS} calls in ${seconds.toFixed(1)} s; the lowest balance that was seen is ${lowest} micro-USD`,
  );

  expect(Object.fromEntries(statuses)).toEqual({ 200: AFFORDED, 402: ATTEMPTS - AFFORDED });
  expect(cluster.provider.log).toHaveLength(AFFORDED);
  expect(lowest).toBeGreaterThanOrEqual(0);
  expect((await balanceOf(first, account)).balance_micro_usdc).toBe(COST - 1);
  const { data } = (await first.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
});

async function balanceOf(gateway: GatewayHere, account: string) {
  const { data } = await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`);
  return data as { readonly balance_micro_usdc: number; readonly locked_micro_usdc: number };
}
