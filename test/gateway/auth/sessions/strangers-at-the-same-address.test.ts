import { expect, test } from 'vitest';
import { startSpine } from '../../../support/spine.ts';
import { openBrowser, plainCookie, type Browser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

// Whoever guesses is held up. A good session of the same address is not.

const MINUTE_MS = 60_000;
let at = Date.parse('2026-03-02T08:00:00Z');
const spine = spineOfFile(() => ({ now: () => at, toml: '[sign_in]\nfailures_per_minute = 1\n' }));

const statusOf = async (browser: Browser, headers = {}) =>
  (await browser.ask('GET', '/api/v1/keys', undefined, headers)).status;
const guess = (letter: string, path = '/api/v1/keys', name = 'tollgate') =>
  openBrowser(spine.origin).ask('GET', path, undefined, {
    cookie: plainCookie(spine.origin, letter.repeat(43), name),
  });

test('the session of a key that is not in the cache is answered, however few may fail', async () => {
  const { key, hash } = await spine.tenant('patched', '0');
  const browser = openBrowser(spine.origin);
  expect((await browser.ask('POST', '/api/v1/auth/session', { api_key: key })).status).toBe(200);
  // A change takes the key out of the cache; the session itself is looked up, too.
  const asKey = { authorization: `Bearer ${key}` };
  expect((await browser.ask('PATCH', `/api/v1/keys/${hash}`, { label: 'new name' }, asKey)).status).toBe(200);
  at += 6_000;
  const all = await Promise.all(Array.from({ length: 40 }, () => statusOf(browser)));
  expect(new Set(all)).toEqual(new Set([200]));
});

test('a known session goes on while strangers of its address fail', async () => {
  const { key } = await spine.tenant('held-up', '0');
  const browser = openBrowser(spine.origin);
  const operator = openBrowser(spine.origin);
  await browser.ask('POST', '/api/v1/auth/session', { api_key: key });
  await operator.ask('POST', '/admin/v1/session', undefined, { authorization: `Bearer ${spine.adminKey}` });
  const asOperator = async () => (await operator.ask('GET', '/admin/v1/accounts')).status;
  expect([await statusOf(browser), await asOperator()]).toEqual([200, 200]);
  expect([(await guess('a')).status, (await guess('b')).status]).toEqual([401, 429]);
  // Both have left the cache by then.
  at += 6_000;
  expect([await statusOf(browser), await asOperator()]).toEqual([200, 200]);
  at += MINUTE_MS;
});

test('the addresses of an operator session look no more cookies up than may fail', async () => {
  for (const method of ['GET', 'DELETE'] as const) {
    const guessed = async (letter: string) =>
      (
        await openBrowser(spine.origin).ask(method, '/admin/v1/session', undefined, {
          cookie: plainCookie(spine.origin, letter.repeat(43), 'tollgate-admin'),
        })
      ).status;
    expect([await guessed('c'), await guessed('d')]).toEqual([200, 429]);
    at += MINUTE_MS;
  }
});

test('outside of server.admin_networks there is no operator session to ask for', async () => {
  const elsewhere = await startSpine({ toml: '[server]\nadmin_networks = ["192.0.2.0/24"]\n' });
  try {
    for (const method of ['GET', 'DELETE'] as const)
      expect((await openBrowser(elsewhere.origin).ask(method, '/admin/v1/session')).status).toBe(403);
  } finally {
    await elsewhere.stop();
  }
});
