import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type Gateway } from '../support/gateway.ts';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ command: 'start', toml: '[ledger]\nflush = "1000ms"\n' });
});
afterAll(async () => {
  const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: readonly { ok: boolean }[] } };
  await gateway.stop();
  expect(data.checks.length).toBeGreaterThan(0);
  expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
});

const call = async (headers: Record<string, string> = {}) => {
  const response = await fetch(`${gateway.baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.apiKey}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'demo/chat', messages: [{ role: 'user', content: 'hello' }] }),
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { id: string }).id;
};
/** The status of a call's record after a crash right behind its answer. */
const afterCrash = async (id: string) => {
  await gateway.kill9();
  return await afterRestart(id);
};
const afterRestart = async (id: string) => {
  await gateway.restart();
  const response = await fetch(`${gateway.baseUrl}/api/v1/generation?id=${id}`, {
    headers: { authorization: `Bearer ${gateway.apiKey}` },
  });
  return response.status;
};

test('health says how late charges are', async () => {
  const health = (await (await fetch(`${gateway.baseUrl}/health/ready`)).json()) as { flush: string };
  expect(health.flush).toBe('up to 1000 ms after the answer: a crash undoes the charges of at most this time');
});

test.each([
  ['a receipt', { 'x-receipt': '1' }],
  ['an idempotency key', { 'idempotency-key': 'once' }],
])('a call with %s is charged after a crash', { timeout: 120_000 }, async (_name, headers) => {
  const id = await call(headers);
  expect(await afterCrash(id)).toBe(200);
  if ('idempotency-key' in headers) expect(await call(headers)).toBe(id);
});

/** The charge is not on the disk sooner than half of `flush` after the answer. */
const SOON_MS = 500;

test('a plain call is as if it had not been', { timeout: 300_000 }, async () => {
  for (;;) {
    const began = performance.now();
    const id = await call();
    await gateway.kill9();
    const took = performance.now() - began;
    const status = await afterRestart(id);
    if (status === 404) break;
    // On a busy machine the crash may come when the charge is on the disk.
    expect(took).toBeGreaterThan(SOON_MS);
  }
});
