import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { audit } from '#billing/compose';
import { openDatabase } from '#store';
import { startProcessCluster, type Cluster } from '../support/cluster.ts';
import type { Gateway } from '../support/gateway.ts';
import type { Keeper } from '../support/server-process.ts';
import { ask, modelBlock, UNHURRIED } from '../support/spine.ts';
import { PROXIES } from './proxies.ts';

// Two gateways of one database restart one after the other, behind the proxies of deploy/, with the delay of
// deploy/. Clients send 20 calls a second, whether the answers come or not. No call may be lost.

const CALLS = 1_000;
const EVERY_MS = 50;
/** Each twentieth call is a stream of six seconds. */
const STREAM_EACH = 20;
const STREAM = ask('hello !tokens:30 !token-ms:200', { stream: true });
/** Networks of clients, which the proxies distribute over the gateways. */
const NETWORKS = 6;
/** What docs/run/rolling-restart.md says to wait after a gateway is ready again. */
const NOTICE_MS = 10_000;

const compose = parse(readFileSync(resolve(import.meta.dirname, '../../deploy/container/compose.yaml'), 'utf8'), {
  merge: true,
}) as { readonly services: Readonly<Record<string, { readonly environment: Readonly<Record<string, string>> }>> };
const delayMs = compose.services['gateway-1']!.environment['TOLLGATE_SHUTDOWN_DELAY_MS'];

let cluster: Cluster<Gateway>;
let key: string;
const keepers: Keeper[] = [];
beforeAll(async () => {
  cluster = await startProcessCluster({
    postgresUrl: inject('postgresUrl'),
    size: 2,
    toml: `[server]\ntrusted_proxies = ["127.0.0.1"]\n${UNHURRIED}shutdown_delay_ms = ${delayMs}\n${modelBlock({ provider: 'Direct', url: '{provider}' })}`,
  });
  ({ key } = await cluster.gateways[0]!.openAccount('caller', 1_000));
});
afterEach(() => Promise.all(keepers.splice(0).map((keeper) => keeper.close())));
afterAll(() => cluster.stop());

/** Sends one call. Resolves to null, or to what went wrong. */
async function call(port: number, index: number, agents: readonly Agent[]): Promise<string | null> {
  const streamed = index % STREAM_EACH === 0;
  const network = index % NETWORKS;
  const sent = request({
    host: '127.0.0.1',
    port,
    path: '/api/v1/chat/completions',
    method: 'POST',
    // Half of the clients keep their connections.
    agent: index % 2 === 0 ? agents[network]! : false,
    localAddress: `127.0.${network + 1}.1`,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  });
  sent.end(JSON.stringify(streamed ? STREAM : ask('hello')));
  try {
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const text = Buffer.concat(await answer.toArray()).toString();
    if (answer.statusCode !== 200) return `${answer.statusCode} ${text.slice(0, 120)}`;
    return text.includes(streamed ? '[DONE]' : '"usage"') ? null : `cut: ${text.slice(-120)}`;
  } catch (error) {
    return String(error);
  }
}

test.each(Object.entries(PROXIES))('behind %s no call is lost', async (_name, start) => {
  const { port, keeper } = await start(cluster.gateways.map(({ baseUrl }) => new URL(baseUrl).host));
  keepers.push(keeper);
  const agents = Array.from({ length: NETWORKS }, () => new Agent({ keepAlive: true }));
  const served = cluster.provider.log.length;
  const restarts = (async () => {
    for (const gateway of cluster.gateways) {
      await pause(3_000);
      expect(await gateway.term()).toBe(0);
      await gateway.restart();
      await pause(NOTICE_MS);
    }
  })();
  let restarting = true;
  void restarts.finally(() => (restarting = false));
  const calls: Promise<string | null>[] = [];
  // The machine decides how long restarts take: at least a thousand calls, and as long as something restarts.
  const begun = performance.now();
  while (calls.length < CALLS || restarting) {
    calls.push(call(port, calls.length, agents));
    await pause(Math.max(0, begun + calls.length * EVERY_MS - performance.now()));
  }
  await restarts;
  const lost = (await Promise.all(calls)).filter((problem) => problem !== null);
  for (const agent of agents) agent.destroy();
  process.stdout.write(`${_name}: ${lost.length} of ${calls.length} calls lost\n`);
  expect(lost).toEqual([]);
  expect(cluster.provider.log.length - served).toBe(calls.length);
  const database = await openDatabase({ url: cluster.databaseUrl, dataDir: '' });
  expect((await audit(database, { overdueMs: null })).ok).toBe(true);
  await database.close();
});
