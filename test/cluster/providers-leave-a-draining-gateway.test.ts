import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.ts';
import { events, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A gateway is stopped while calls from another run through it: they end whole, and no call that comes meanwhile is
// lost.

const PROXIES = 5;

let cluster: Cluster<Spine>;
/** What stands before the gateways in production. */
let balancer: FaultProxy;
const target = { port: 0 };
let proxies: DialledIn[];
beforeAll(async () => {
  cluster = await startCluster({ postgresUrl: inject('postgresUrl') });
  target.port = portOf(cluster.gateways[0]!);
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

const portOf = ({ origin }: Spine) => Number(new URL(origin).port);
const question = (index: number, content: string, stream = false) => ({
  model: `m${index}/model`,
  messages: [{ role: 'user', content }],
  max_tokens: 200,
  stream,
});

test('its calls end whole, its providers are at the next one, and no other call fails', async () => {
  const [old, next, third] = cluster.gateways as [Spine, Spine, Spine];
  await Promise.all(proxies.map((_, index) => reachable([third.origin], `m${index}/model`)));
  const streams = await Promise.all(
    proxies.map((_, index) => third.post('/chat/completions', question(index, '!tokens:100 !token-ms:20', true))),
  );
  const texts = Promise.all(streams.map((response) => response.text()));

  // Calls without a pause, from before the stop until after it.
  let over = false;
  let served = 0;
  const failures: string[] = [];
  let slowest = 0;
  const callers = proxies.map(async (_, index) => {
    while (!over) {
      const begun = performance.now();
      const response = await (index % 2 === 0 ? next : third).post('/chat/completions', question(index, '!tokens:2'));
      const text = await response.text();
      if (response.status === 200) served += 1;
      else failures.push(text);
      slowest = Math.max(slowest, performance.now() - begun);
    }
  });
  await until(() => served > 20, 'calls run');

  target.port = portOf(next);
  const begun = performance.now();
  cluster.forget(old);
  const stopped = old.stop();
  await Promise.all(proxies.map((proxy) => proxy.logged('ready: calls can come', 2)));
  const movedMs = performance.now() - begun;
  for (const text of await texts) {
    expect(events(text).at(-1)).toBe('[DONE]');
    expect((events(text).at(-2) as { usage: { completion_tokens: number } }).usage.completion_tokens).toBe(100);
  }
  await stopped;
  over = true;
  await Promise.all(callers);
  console.log(
    `  moved after ${Math.round(movedMs)} ms; of ${served} calls meanwhile the slowest took ${Math.round(slowest)} ms`,
  );
  expect(failures).toEqual([]);
  expect(movedMs).toBeLessThan(atThisLoad(2_000));
  expect(slowest).toBeLessThan(atThisLoad(3_000));
  // Both ways: where the providers are now, and across.
  for (const gateway of [next, third])
    for (const [index] of proxies.entries())
      expect((await gateway.post('/chat/completions', question(index, '!tokens:2'))).status).toBe(200);
  expect(await third.faults()).toEqual([]);
});
