import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { openDatabase } from '#store';
import { reachable, startMixedCluster, until } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.ts';
import type { GatewayHere } from '../support/gateway-here.ts';
import { events, UNHURRIED } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A gateway is killed that providers are connected to. What ran through it ends and is paid by the rules; the
// providers come back at the next gateway; a call that had not begun is not lost.

const PROXIES = 5;
const CALLERS = 10;
/** A reply that does not end while the test runs. */
const ENDLESS = '!tokens:200 !token-ms:1000';

let cluster: Awaited<ReturnType<typeof startMixedCluster>>;
let key: string;
let balancer: FaultProxy;
const target = { port: 0 };
let proxies: DialledIn[];
beforeAll(async () => {
  cluster = await startMixedCluster({
    postgresUrl: inject('postgresUrl'),
    // A call that had not begun waits for its provider, however long a busy machine needs to dial in again.
    toml: `${UNHURRIED}\n[tunnel]\nwait_ms = 60000`,
  });
  const [first] = cluster.gateways;
  ({ key } = await first!.openAccount('caller', 100));
  target.port = portOf(first!);
  balancer = await startFaultProxy(target);
  proxies = await Promise.all(
    Array.from({ length: PROXIES }, (_, index) =>
      dialIn({
        router: `http://127.0.0.1:${balancer.port}`,
        services: offeredModel({ url: cluster.provider.url, provider: `P${index}`, name: `m${index}/model` }),
      }),
    ),
  );
});
afterAll(async () => {
  await Promise.all((proxies ?? []).map((proxy) => proxy.close()));
  await balancer?.stop();
  await cluster?.stop();
});

const portOf = ({ baseUrl }: GatewayHere) => Number(new URL(baseUrl).port);
const call = (gateway: GatewayHere, index: number, content: string, stream = false) =>
  fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: `m${index % PROXIES}/model`,
      messages: [{ role: 'user', content }],
      max_tokens: 200,
      stream,
    }),
  });

test('its providers are soon at another, and only what ran through it fails', async () => {
  const { killable: killed } = cluster;
  const [, next, third] = cluster.gateways as [GatewayHere, GatewayHere, GatewayHere];
  await Promise.all(proxies.map((_, index) => reachable([next.baseUrl, third.baseUrl], `m${index}/model`)));
  // One that came in at the gateway itself, and streams of others through it.
  const ofKilled = await call(killed, 0, ENDLESS, true);
  const died = ofKilled.text();
  died.catch(() => {});
  const streams = await Promise.all(proxies.map((_, index) => call(third, index, ENDLESS, true)));
  const texts = Promise.all(streams.map((response) => response.text()));

  let over = false;
  let served = 0;
  const failures: { readonly caller: number; readonly text: string }[] = [];
  const callers = Array.from({ length: CALLERS }, async (_, index) => {
    while (!over) {
      const response = await call(index % 2 === 0 ? next : third, index, '!tokens:2 !head-delay:20');
      const text = await response.text();
      if (response.status === 200) served += 1;
      else failures.push({ caller: index, text });
    }
  });
  await until(() => served > 20, 'calls run');

  target.port = portOf(next);
  const killedAt = performance.now();
  cluster.forget(killed);
  await killed.kill9();
  await Promise.all(proxies.map((proxy) => proxy.logged('ready: calls can come', 2)));
  const movedMs = performance.now() - killedAt;
  const before = served;
  await until(() => served > before + 50, 'calls go on');
  const backMs = performance.now() - killedAt;
  over = true;
  await Promise.all(callers);
  console.log(
    `  providers moved after ${Math.round(movedMs)} ms, 50 calls more after ${Math.round(backMs)} ms; ${failures.length} of ${served} failed`,
  );
  expect(movedMs).toBeLessThan(atThisLoad(3_000));
  expect(backMs).toBeLessThan(atThisLoad(5_000));
  // One of each caller was on its way at that moment, and nobody can say of it that its provider has not begun. No
  // other is lost.
  for (const { text } of failures) expect(text).toContain('broke off before it answered');
  expect(new Set(failures.map(({ caller }) => caller)).size).toBe(failures.length);

  for (const text of await texts) {
    // The client is told that this is not the whole.
    expect(text).toContain('"error"');
    expect(events(text).at(-1)).not.toBe('[DONE]');
  }
  await expect(died).rejects.toThrow();
  await expectBooksInOrder(third);
});

async function expectBooksInOrder(gateway: GatewayHere): Promise<void> {
  // The call that came in at the killed gateway keeps its lock until it expires, which no clock of this test waits for.
  const database = await openDatabase({ url: cluster.databaseUrl, dataDir: '' });
  try {
    const ledger = await createLedger({ database });
    expect(await ledger.expire(Date.now() + 86_400_000)).toHaveLength(1);
    await ledger.close();
  } finally {
    await database.close();
  }
  const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
}
