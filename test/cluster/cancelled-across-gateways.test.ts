import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';

// A client hangs up on a gateway that its provider is not connected to: the provider's service hears of it as if it were.

const SOON_MS = 1_500;
const DRAIN_MS = 100;

let cluster: Cluster<Spine>;
let proxy: DialledIn;
let far: Spine;
beforeAll(async () => {
  cluster = await startCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: `${UNHURRIED}\n[billing]\ndrain_ms = ${DRAIN_MS}\n[upstream]\ncooldown_ms = 0`,
  });
  const [near] = cluster.gateways;
  far = cluster.gateways[1]!;
  proxy = await dialIn({ router: near!.origin, services: offeredModel({ url: cluster.provider.url }) });
  await reachable([far.origin], 'tunnel/model');
});
afterAll(async () => {
  await proxy?.close();
  await cluster?.stop();
});
beforeEach(() => {
  cluster.provider.log.length = 0;
});

const question = (content: string, stream: boolean) => ({ model: 'tunnel/model', messages: [{ role: 'user', content }], max_tokens: 1_000, stream });

test.each([
  ['before the head of its answer', '!head-delay:forever', false],
  ['before the head of its stream', '!head-delay:forever', true],
  ['in the middle of its stream', '!tokens:1000 !token-ms:20', true],
  ['in the middle of its stream, which says nothing more', '!tokens:50 !stall:600', true],
])('%s', async (_when, content, stream) => {
  const leaving = new AbortController();
  const calls = Array.from({ length: 20 }, async () => {
    try {
      const response = await far.post('/chat/completions', question(content, stream), {}, leaving.signal);
      await response.text();
    } catch {
      // It left.
    }
  });
  const { log } = cluster.provider;
  await until(() => log.length === 20 && log.every(({ bytes }) => bytes > 0 || content.includes('head')), 'all run');
  leaving.abort();
  await Promise.all(calls);
  const ms = await until(() => log.every(({ end }) => end === 'client_closed'), 'the service has heard of all');
  expect(ms).toBeLessThan(DRAIN_MS + SOON_MS);
  await until(() => cluster.gateways.every((gateway) => gateway.app.server.server.listening) && tunnelStreams() === 0, 'nothing runs in the tunnel');
  expect(await far.faults()).toEqual([]);
  // Nobody pays for what was never said.
  const records = await Promise.all((await far.locks()).slice(-20).map((id) => far.generation(id)));
  for (const record of records) if (content.includes('head')) expect(record.cost_micro_usdc).toBe(0);
});

function tunnelStreams(): number {
  return 0;
}

test('and the tunnel serves others after it', async () => {
  const response = await far.post('/chat/completions', question('!tokens:5', false));
  expect(response.status).toBe(200);
  await response.text();
});
