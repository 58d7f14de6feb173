import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { afterEach, expect, inject, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf } from '#billing';
import { openDatabase } from '#store';
import { freshDatabase } from '../support/fresh-database.ts';
import { startProvider } from '../support/provider.ts';
import { ask, events, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// A gateway that stops lets its streams finish, takes no new calls, and leaves nothing undecided.

let spine: Spine | null = null;
let drop = async () => {};
let databaseUrl = '';
afterEach(async () => {
  await spine?.provider.stop();
  await drop();
});

async function start(drainMs: number): Promise<Spine> {
  const database = await freshDatabase(inject('postgresUrl'));
  drop = () => database.drop();
  databaseUrl = database.url;
  const [head, ...rest] = UNHURRIED.split('\n');
  spine = await startSpine({
    databaseUrl,
    provider: await startProvider(),
    toml: [head, `drain_on_shutdown_ms = ${drainMs}`, ...rest].join('\n'),
  });
  return spine;
}
const logged = ({ logs }: Spine) =>
  logs.map((line) => JSON.parse(line) as { readonly level: string; readonly msg: string; readonly method?: string });

/** What the account has once the gateway is gone, from the database itself. */
async function left(account: string) {
  const database = await openDatabase({ url: databaseUrl, dataDir: '' });
  const ledger = await createLedger({ database, now: Date.now });
  try {
    return (await ledger.balance(escrowOf(account)))!;
  } finally {
    await ledger.close();
    await database.close();
  }
}

test('a running stream finishes and is paid; meanwhile readiness and new calls are 503', async () => {
  const gateway = await start(10_000);
  const response = await gateway.post('/chat/completions', ask('hello !tokens:30 !token-ms:100', { stream: true }));
  const text = response.text();
  const closing = gateway.app.close();
  const ready = await fetch(`${gateway.origin}/health/ready`);
  expect(ready.status).toBe(503);
  const refused = await gateway.post('/chat/completions', ask('hello'));
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(await refused.json()).toMatchObject({ error: { code: 503 } });
  expect((await fetch(`${gateway.origin}/health/live`)).status).toBe(200);
  const chunks = events(await text);
  expect(chunks.at(-1)).toBe('[DONE]');
  await closing;
  // Nobody has to do anything about a refused call, so it raises no alert.
  const lines = logged(gateway);
  expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
  expect(lines).toContainEqual(
    expect.objectContaining({ level: 'info', msg: 'refused: the gateway is shutting down', method: 'POST' }),
  );
  expect(gateway.provider.log).toHaveLength(1);
  const cost = BigInt(gateway.provider.log[0]!.promptTokens + 60);
  expect(await left(gateway.account)).toEqual({ available: 100_000_000n - cost, locked: 0n });
  await expect(fetch(`${gateway.origin}/health/live`)).rejects.toThrow();
});

test('after an announced stop it is unready and serves on; each answer ends its connection; then none is accepted', async () => {
  const gateway = await start(10_000);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  /** Asks over the one connection of the agent. */
  const send = async (path: string, body?: object) => {
    const asked = request(`${gateway.origin}${path}`, {
      agent,
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    });
    asked.end(body && JSON.stringify(body));
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    await answer.toArray();
    return [answer.statusCode, answer.headers.connection, asked.reusedSocket];
  };
  const ready = async () => (await fetch(`${gateway.origin}/health/ready`)).status;
  await expect.poll(ready, { timeout: 60_000 }).toBe(200);
  expect(await send('/health/live')).toEqual([200, 'keep-alive', false]);
  gateway.app.announceStop();
  expect(await ready()).toBe(503);
  // The idle connection is not closed under the call that its owner may be sending.
  expect(await send('/api/v1/chat/completions', ask('hello'))).toEqual([200, 'close', true]);
  const stream = ask('hello !tokens:30 !token-ms:20', { stream: true });
  expect(await send('/api/v1/chat/completions', stream)).toEqual([200, 'close', false]);
  const running = await gateway.post('/chat/completions', stream);
  expect(running.headers.get('connection')).toBe('close');
  const text = running.text();
  const closing = gateway.app.close();
  // Connections that came before are accepted first.
  const isRefused = () =>
    fetch(`${gateway.origin}/health/ready`).then(
      () => false,
      () => true,
    );
  await expect.poll(isRefused, { interval: 1 }).toBe(true);
  expect(events(await text).at(-1)).toBe('[DONE]');
  await closing;
  agent.destroy();
  const paid = gateway.provider.log.reduce((sum, { promptTokens, end }) => {
    expect(end).toBe('finished');
    return sum + BigInt(promptTokens);
  }, 0n);
  expect((await left(gateway.account)).locked).toBe(0n);
  expect((await left(gateway.account)).available).toBeLessThan(100_000_000n - paid);
});

test('a call past the drain limit is cut, with the reason, and not charged', async () => {
  const gateway = await start(300);
  const response = await gateway.post('/chat/completions', ask('hello !tokens:40 !token-ms:200', { stream: true }));
  const reading = response.text();
  const open = Promise.withResolvers<void>();
  gateway.provider.hold(open.promise);
  const whole = gateway.post('/chat/completions', ask('hello'));
  while (gateway.provider.log.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const begun = performance.now();
  await gateway.app.close();
  expect(performance.now() - begun).toBeLessThan(atThisLoad(3_000));
  open.resolve();
  const stopping = 'This gateway is shutting down: retry in a moment, or at another gateway';
  const text = await reading;
  expect(text).toContain(`"message":"${stopping}"`);
  expect(text).not.toContain('"finish_reason":"stop"');
  const refused = await whole;
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { message: stopping } });
  const lines = logged(gateway);
  expect(lines.filter(({ msg }) => msg === 'call')).toEqual(
    [1, 2].map(
      () => expect.objectContaining({ status: 503, error: 'service_unavailable', reason: stopping }) as object,
    ),
  );
  expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
  const { available, locked } = await left(gateway.account);
  expect(available + locked).toBe(100_000_000n);
});

test('without calls it stops at once, also with idle connections open', async () => {
  const gateway = await start(10_000);
  await (await gateway.get('/key')).text();
  const begun = performance.now();
  await gateway.app.close();
  expect(performance.now() - begun).toBeLessThan(atThisLoad(1_000));
});

test('closing twice is closing once', async () => {
  const gateway = await start(1_000);
  await Promise.all([gateway.app.close(), gateway.app.close()]);
});
