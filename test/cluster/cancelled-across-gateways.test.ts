import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { atThisLoad } from '../support/at-this-load.ts';
import { reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';

// A client hangs up on a gateway that its provider is not connected to: the provider's service hears of it as if it
// were.

const SOON_MS = 1_500;
const DRAIN_MS = 100;

let cluster: Cluster<Spine>;
let proxy: DialledIn;
/** Where the proxy is connected, and where the calls come in. */
let near: Spine;
let far: Spine;
beforeAll(async () => {
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: `${UNHURRIED}\n[billing]\ndrain_ms = ${DRAIN_MS}\n[upstream]\ncooldown_ms = 0`,
  });
  [near, far] = cluster.gateways as [Spine, Spine];
  proxy = await dialIn({ router: near.origin, services: offeredModel({ url: cluster.provider.url }) });
  await reachable([far.origin], 'tunnel/model');
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
});
beforeEach(() => {
  cluster.provider.log.length = 0;
});

const question = (content: string, stream: boolean) => ({
  model: 'tunnel/model',
  messages: [{ role: 'user', content }],
  max_tokens: 1_000,
  stream,
});

const CALLS = 20;

test.each([
  ['before the head of its answer', '!head-delay:forever', false],
  ['before the head of its stream', '!head-delay:forever', true],
  ['in the middle of its stream', '!tokens:1000 !token-ms:20', true],
  ['in the middle of a stream that says nothing more', '!tokens:50 !stall:600', true],
])('%s', async (_when, content, stream) => {
  const begun = !content.includes('head');
  const before = await far.balance();
  const leaving = new AbortController();
  const calls = Array.from({ length: CALLS }, async () => {
    const response = await far.post('/chat/completions', question(content, stream), {}, leaving.signal);
    await response.text();
  });
  const { log } = cluster.provider;
  await until(() => log.length === CALLS && log.every(({ bytes }) => bytes > 0 || !begun), 'all run');
  leaving.abort();
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(Array(CALLS).fill('rejected'));
  const ms = await until(() => log.every(({ end }) => end === 'client_closed'), 'the service has heard of all');
  expect(ms).toBeLessThan(atThisLoad(DRAIN_MS + SOON_MS));
  await until(async () => (await streams()) === 0, 'nothing runs in the tunnel any more');
  expect(await far.faults()).toEqual([]);
  // What was said is paid for, and what never was is not.
  const paid = before.available - (await far.balance()).available;
  const said = log.reduce(
    (sum, { promptTokens, completionTokens }) => sum + BigInt(promptTokens + 2 * completionTokens),
    0n,
  );
  expect(paid).toBeLessThanOrEqual(begun ? said : 0n);
  expect(paid > 0n).toBe(begun);
});

async function streams(): Promise<number> {
  const text = await (
    await fetch(`${near.origin}/metrics`, { headers: { authorization: `Bearer ${near.adminKey}` } })
  ).text();
  return Number(/^tollgate_tunnel_streams (\d+)$/m.exec(text)![1]);
}

test('the tunnel serves others after it', async () => {
  const response = await far.post('/chat/completions', question('!tokens:5', false));
  expect(response.status).toBe(200);
  await response.text();
});
