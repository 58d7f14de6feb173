import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { endpointsOf, reachable, startMixedCluster, until } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import type { GatewayHere } from '../support/gateway-here.ts';
import { modelBlock, UNHURRIED } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A gateway dies and its providers with it: nobody says that they have gone. The others find out, and until then
// calls go to who else serves.

/** A gateway counts as gone after six seconds of silence; the others look five times a second. */
const LEASE_MS = 6_000;
const SLACK_MS = 2_000;

let cluster: Awaited<ReturnType<typeof startMixedCluster>>;
let key: string;
let proxy: DialledIn;
beforeAll(async () => {
  cluster = await startMixedCluster({
    postgresUrl: inject('postgresUrl'),
    toml: `${UNHURRIED}\n[tunnel]\nwait_ms = 500\nshared_names = ["model/both"]\n[upstream]\ncooldown_ms = 200\n${modelBlock({ name: 'model/both', provider: 'Direct', url: '{provider}' })}`,
  });
  const [first, second, third] = cluster.gateways as [GatewayHere, GatewayHere, GatewayHere];
  ({ key } = await second.openAccount('caller', 100));
  proxy = await dialIn({
    router: first.baseUrl,
    services: `${offeredModel({ url: cluster.provider.url, name: 'alone/model' })}${offeredModel({ url: cluster.provider.url, name: 'model/both', prompt: 0.01, completion: 0.01 })}`,
  });
  await reachable([second.baseUrl, third.baseUrl], 'alone/model');
});
afterAll(() => cluster?.stop());

async function call(
  gateway: GatewayHere,
  model: string,
): Promise<{ readonly status: number; readonly provider: string | null; readonly ms: number }> {
  const begun = performance.now();
  const response = await fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: '!tokens:3' }], max_tokens: 10 }),
  });
  await response.text();
  return { status: response.status, provider: response.headers.get('x-provider'), ms: performance.now() - begun };
}

test('calls fail over at once, or end free; after its lease every gateway says that the provider is away', async () => {
  const { killable: killed } = cluster;
  const [, second, third] = cluster.gateways as [GatewayHere, GatewayHere, GatewayHere];
  const others = [second, third];
  // The cheap one is nearly always chosen, once it has served some calls.
  for (const gateway of others)
    for (let n = 0; n < 3; n++) expect(await call(gateway, `${proxy.id}:model/both`)).toMatchObject({ status: 200 });
  const usual = await Promise.all(Array.from({ length: 10 }, () => call(second, 'model/both')));
  expect(usual.some(({ provider }) => provider === 'Tunnel')).toBe(true);
  const { data: before } = (await second.admin('GET', '/accounts/tollgate%3Alocal%3Acaller')) as {
    data: { balance_micro_usdc: number };
  };
  const seen = cluster.provider.log.length;

  proxy.kill();
  cluster.forget(killed);
  await killed.kill9();
  const killedAt = performance.now();
  for (const gateway of others) {
    expect(await call(gateway, 'model/both')).toMatchObject({ status: 200, provider: 'Direct' });
    const alone = await call(gateway, 'alone/model');
    expect([500, 503]).toContain(alone.status);
    expect(alone.ms).toBeLessThan(atThisLoad(2_500));
  }
  for (const gateway of others) {
    const away = async () =>
      (await endpointsOf(gateway.baseUrl, 'alone/model')).every(({ health }) => health === 'away');
    await until(away, 'its lease has ended');
  }
  const ms = performance.now() - killedAt;
  console.log(`  away after ${Math.round(ms)} ms`);
  // A machine that stops for half of a lease has not looked, and begins the lease anew.
  expect(ms).toBeLessThan(2 * LEASE_MS + atThisLoad(SLACK_MS));

  for (const gateway of others) {
    expect(await call(gateway, 'model/both')).toMatchObject({ status: 200, provider: 'Direct' });
    expect([500, 503]).toContain((await call(gateway, 'alone/model')).status);
  }
  const paid = cluster.provider.log
    .slice(seen)
    .reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens + 2 * completionTokens, 0);
  expect(cluster.provider.log.length).toBe(seen + 4);
  const { data: after } = (await second.admin('GET', '/accounts/tollgate%3Alocal%3Acaller')) as {
    data: { balance_micro_usdc: number };
  };
  expect(before.balance_micro_usdc - after.balance_micro_usdc).toBe(paid);
  const { data: audit } = (await second.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(audit.checks.filter(({ ok }) => !ok)).toEqual([]);
});
