import { afterAll, beforeAll, expect, test } from 'vitest';
import { endpointsOf, reachable, startCluster, until, type Cluster } from '../support/cluster.ts';
import { dialIn, offeredModel, type DialledIn } from '../support/dial-in.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';
import { UNHURRIED, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// PostgreSQL restarts while callers of two gateways use providers that dialled in: the tunnels stay, calls go on
// within five seconds, and the books are in order.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PROVIDERS = 4;
const CALLERS = DEEP ? 8 : 6;
/** Calls before a restart, and as many after it. */
const CALLS = DEEP ? 60 : 24;
const BACK_MS = 5_000;

let postgres: Postgres;
let cluster: Cluster<Spine>;
let origins: readonly string[];
let proxies: DialledIn[];
beforeAll(async () => {
  postgres = await startPostgres();
  cluster = await startCluster({
    postgresUrl: postgres.url,
    size: 2,
    toml: `${UNHURRIED}\n[billing]\nsweep_ms = 200\n[upstream]\ncall_timeout_ms = 20000`,
  });
  origins = cluster.gateways.map(({ origin }) => origin);
  proxies = await Promise.all(Array.from({ length: PROVIDERS }, (_, index) => dial(index)));
  await Promise.all(proxies.map((_, index) => reachable(origins, `m${index}/model`)));
});
afterAll(async () => {
  await Promise.all((proxies ?? []).map((proxy) => proxy.close()));
  await cluster?.stop();
  await postgres?.stop();
});

const dial = (index: number, ready = true) =>
  dialIn({
    router: origins[index % 2]!,
    services: offeredModel({ url: cluster.provider.url, name: `m${index}/model`, provider: `P${index}` }),
    ready,
  });

interface Outcome {
  readonly status: number;
  readonly failure: string | null;
  /** Micro-USD, as the answer says. */
  readonly cost: number;
}

/** Callers without a pause. Each provider is called at both gateways. */
function load() {
  const outcomes: Outcome[] = [];
  let stopped = false;
  const caller = async (index: number) => {
    for (let turn = 0; !stopped; turn += 1) {
      const body = {
        model: `m${(index + turn) % PROVIDERS}/model`,
        messages: [{ role: 'user', content: `hello !tokens:${1 + (turn % 9)}` }],
        max_tokens: 20,
        stream: turn % 3 === 0,
      };
      const response = await cluster.gateways[index % 2]!.post('/chat/completions', body);
      const text = await response.text();
      const failure = text.includes('"error"') ? text.slice(0, 300) : null;
      const cost = failure === null ? Math.round(Number(/"cost":([\d.e-]+)/.exec(text)?.[1] ?? 0) * 1e6) : 0;
      outcomes.push({ status: response.status, failure, cost });
      if (response.status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const callers = Array.from({ length: CALLERS }, (_, index) => caller(index));
  return {
    served: () => outcomes.filter(({ failure }) => failure === null).length,
    async stop() {
      stopped = true;
      await Promise.all(callers);
      return outcomes;
    },
  };
}

/** By day in good order; as a crash, tasks meet it by day (../a2a/faults/database-restarts). */
const MODES = DEEP ? (['immediate', 'fast'] as const) : (['fast'] as const);

test.each(MODES)('a restart (%s) under load', async (mode) => {
  const [first] = cluster.gateways as [Spine, Spine];
  const before = await first.balance();
  const seen = cluster.provider.log.length;
  const running = load();
  await until(() => running.served() > CALLS, 'calls run');
  await postgres.restart(mode);
  const already = running.served();
  const backMs = await until(() => running.served() > already + CALLS, 'calls run again');
  expect(backMs).toBeLessThan(atThisLoad(BACK_MS));
  const outcomes = await running.stop();
  const failed = outcomes.filter(({ failure }) => failure !== null);
  console.log(
    `  ${mode}: ${CALLS} calls more after ${Math.round(backMs)} ms; ${failed.length} of ${outcomes.length} heard of it`,
  );
  for (const { status, failure } of failed) {
    expect([200, 503], failure!).toContain(status);
    expect(failure).toContain('"internal"');
  }
  // Nobody had to dial again: that a provider is there, a gateway knows by its connection.
  for (const proxy of proxies)
    expect(proxy.lines.filter(({ msg }) => msg === 'no connection to the router')).toEqual([]);
  for (const index of proxies.keys())
    expect(await reachable(origins, `m${index}/model`)).toBeLessThan(atThisLoad(1_000));

  expect(await first.faults()).toEqual([]);
  // Who got a whole answer paid it; a call whose answer was lost on the way has its one charge or none.
  const paid = Number(before.available - (await first.balance()).available);
  const told = outcomes.reduce((sum, { cost }) => sum + cost, 0);
  const possible = cluster.provider.log
    .slice(seen)
    .reduce((sum, call) => sum + call.promptTokens + 2 * call.completionTokens, 0);
  expect(paid).toBeGreaterThanOrEqual(told);
  expect(paid).toBeLessThanOrEqual(possible);
});

test('who dials in and who leaves while it is gone is known everywhere once it is back', async () => {
  const leaver = await dial(10);
  await reachable(origins, 'm10/model');
  await postgres.kill9();
  const comer = await dial(11, false);
  leaver.kill();
  await until(() => comer.lines.length > 2, 'it has tried');
  expect(comer.lines.some(({ msg }) => msg === 'ready: calls can come')).toBe(false);
  await postgres.restart();
  const backMs = await until(async () => {
    const away = await Promise.all(
      origins.map(async (origin) => (await endpointsOf(origin, 'm10/model')).every(({ health }) => health === 'away')),
    );
    const there = await Promise.all(
      origins.map(async (origin) =>
        (await endpointsOf(origin, 'm11/model')).some(({ health }) => health === 'healthy' || health === 'untried'),
      ),
    );
    return [...away, ...there].every(Boolean);
  }, 'both are known');
  console.log(`  both known after ${Math.round(backMs)} ms`);
  expect(backMs).toBeLessThan(atThisLoad(BACK_MS));
  await comer.close();
});
