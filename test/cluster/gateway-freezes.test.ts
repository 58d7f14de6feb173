import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { endpointsOf, reachable, startProcessCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import type { Gateway } from '../support/gateway.ts';
import { modelBlock, UNHURRIED } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A gateway stands still with all its connections open. Calls that are on their way to its providers go to others
// after a while, new ones at once as soon as its lease has ended; when it wakes up, all is as before.

const LEASE_MS = 6_000;
/** A connection between gateways that answers nothing is given up after this. */
const SILENCE_MS = 10_000;
const SLACK_MS = 3_000;

let cluster: Cluster<Gateway>;
let key: string;
let proxy: DialledIn;
beforeAll(async () => {
  cluster = await startProcessCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: `${UNHURRIED}\n[tunnel]\nshared_names = ["model/both"]\n${modelBlock({ name: 'model/both', provider: 'Direct', url: '{provider}', prompt: 100, completion: 100 })}`,
  });
  const [first, second] = cluster.gateways as [Gateway, Gateway];
  ({ key } = await second.openAccount('caller', 100));
  proxy = await dialIn({
    router: first.baseUrl,
    services: offeredModel({ url: cluster.provider.url, name: 'model/both', prompt: 0.01, completion: 0.01 }),
  });
  await until(async () => (await endpointsOf(second.baseUrl, 'model/both')).length === 2, 'it knows of both');
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
});

async function call(
  gateway: Gateway,
  model = 'model/both',
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

test('its calls are served by others, and it is taken back when it wakes', async () => {
  const [frozen, other] = cluster.gateways as [Gateway, Gateway];
  // The cheap one is chosen once it has served some calls.
  for (let n = 0; n < 3; n++) await call(other, `${proxy.id}:model/both`);
  expect(await call(other)).toMatchObject({ status: 200, provider: 'Tunnel' });
  process.kill(frozen.pid, 'SIGSTOP');
  try {
    const frozenAt = performance.now();
    // Sent into the tunnel of the gateway that sleeps.
    const waiting = Array.from({ length: 5 }, () => call(other));
    const away = async () => (await endpointsOf(other.baseUrl, 'model/both')).some(({ health }) => health === 'away');
    await until(away, 'its lease has ended');
    const awayMs = performance.now() - frozenAt;
    expect(awayMs).toBeLessThan(LEASE_MS + atThisLoad(SLACK_MS));
    const next = await call(other);
    expect(next).toMatchObject({ status: 200, provider: 'Direct' });
    expect(next.ms).toBeLessThan(atThisLoad(1_000));
    const answers = await Promise.all(waiting);
    for (const { status, provider, ms } of answers) {
      expect([status, provider]).toEqual([200, 'Direct']);
      expect(ms).toBeLessThan(SILENCE_MS + atThisLoad(2 * SLACK_MS));
    }
    console.log(
      `  away after ${Math.round(awayMs)} ms; the calls in its tunnel took ${Math.round(Math.max(...answers.map(({ ms }) => ms)))} ms`,
    );
  } finally {
    process.kill(frozen.pid, 'SIGCONT');
  }
  expect(await reachable([other.baseUrl, frozen.baseUrl], 'model/both')).toBeLessThan(atThisLoad(5_000));
  const back = await until(
    async () => (await endpointsOf(other.baseUrl, 'model/both')).every(({ health }) => health !== 'away'),
    'it is taken back',
  );
  console.log(`  back after ${Math.round(back)} ms`);
  expect((await call(frozen)).status).toBe(200);
  const { data } = (await other.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
});
