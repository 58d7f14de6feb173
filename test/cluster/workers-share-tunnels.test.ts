import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { request } from 'undici';
import { children, running } from '../support/process-tree.ts';
import { until } from '../support/cluster.ts';
import { dialIn, offeredModel, READY, type DialledIn } from '../support/dial-in.ts';
import { freshDatabase, type FreshDatabase } from '../support/fresh-database.ts';
import { startGateway, type Gateway } from '../support/gateway.ts';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { IDENTITY_SEED, UNHURRIED } from '../support/spine.ts';
import { DOMAIN } from '../support/wallets.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A gateway of two processes on one port: a proxy is connected to one of them, and calls that land on the other
// reach it as well.

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PROXIES = 3;

let database: FreshDatabase;
let upstream: TestProvider;
let gateway: Gateway;
let key: string;
let proxies: DialledIn[];
beforeAll(async () => {
  database = await freshDatabase(inject('postgresUrl'));
  upstream = await startProvider();
  gateway = await startGateway({
    args: ['--workers', '2'],
    toml: UNHURRIED,
    databaseUrl: database.url,
    redisUrl: inject('redisUrl'),
    env: { TOLLGATE_IDENTITY_SEED: IDENTITY_SEED, TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
  });
  ({ key } = await gateway.openAccount('caller', 10));
  proxies = await Promise.all(Array.from({ length: PROXIES }, (_, index) => dial(index)));
  // The other process hears of it a moment later.
  await until(async () => (await callAll(4)).every(({ status }) => status === 200), 'all can be called');
});
afterAll(async () => {
  await Promise.all((proxies ?? []).map((proxy) => proxy.close()));
  await gateway?.stop();
  await upstream?.stop();
  await database?.drop();
});

const dial = (index: number) =>
  dialIn({
    router: gateway.baseUrl,
    services: offeredModel({ url: upstream.url, name: `m${index}/model`, provider: `P${index}` }),
  });

interface Answer {
  readonly status: number;
  /** Of the process that answered. */
  readonly process: string;
  readonly text: string;
}
/** A call on a connection of its own, so that any of the processes may get it. */
async function call(index: number, stream: boolean): Promise<Answer> {
  const response = await request(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: `m${index % PROXIES}/model`,
      messages: [{ role: 'user', content: '!tokens:5' }],
      max_tokens: 10,
      stream,
    }),
    reset: true,
    headersTimeout: atThisLoad(2_000),
  });
  // Ids begin with what is random of their process.
  const process = String(response.headers['x-generation-id']).slice(0, -6);
  return { status: response.statusCode, process, text: await response.body.text() };
}
/** The connection that was about to be given to a process when that was killed may be lost with it. */
const callAllAgain = () => callAll(1).catch(() => [{ status: 0 }]);
const callAll = (times: number) =>
  Promise.all(Array.from({ length: times * PROXIES }, (_, index) => call(index, index % 2 === 0)));

async function expectBooksInOrder(): Promise<void> {
  const held = async () =>
    ((await gateway.admin('GET', '/accounts/tollgate%3Alocal%3Acaller')) as { data: { locked_micro_usdc: number } })
      .data.locked_micro_usdc;
  await until(async () => (await held()) === 0, 'no lock is held');
  const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
}

test('whichever process a call lands on', async () => {
  const answers = await callAll(12);
  expect(new Set(answers.map(({ process }) => process)).size).toBe(2);
  for (const { status, text } of answers) {
    expect(status, text).toBe(200);
    expect(text).toContain('"completion_tokens":5');
  }
  await expectBooksInOrder();
});

test('and after one of them was killed, or each: its proxies come back, and the other goes on', async () => {
  const killed = children(gateway.pid).slice(0, DEEP ? 2 : 1);
  for (const pid of killed) {
    process.kill(pid, 'SIGKILL');
    await until(() => running([pid]).length === 0, 'it is gone');
    const begun = performance.now();
    await until(
      async () => (await callAllAgain()).every(({ status }) => status === 200),
      'all can be called',
      atThisLoad(10_000),
    );
    const backMs = performance.now() - begun;
    await until(() => children(gateway.pid).length === 2, 'it is replaced');
    console.log(`  all can be called ${Math.round(backMs)} ms after a process was killed`);
    expect(backMs).toBeLessThan(atThisLoad(5_000));
    const bothTakeCalls = async () => {
      const answers = await callAll(4);
      return answers.every(({ status }) => status === 200) && new Set(answers.map(({ process }) => process)).size === 2;
    };
    await until(bothTakeCalls, 'the new one takes calls');
    for (const { status, text } of await callAll(4)) expect(status, text).toBe(200);
  }
  // Where both are gone that they had dialled in to at first.
  for (const proxy of proxies)
    expect(proxy.lines.filter(({ msg }) => msg === READY).length).toBeGreaterThanOrEqual(killed.length);
  await expectBooksInOrder();
});
