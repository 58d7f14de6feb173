import { beforeEach, expect, test } from 'vitest';
import { startSpine } from '../../../support/spine.ts';
import { openBrowser, type Browser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

// The ends of sessions, on a gateway whose clock the tests set.

const HOUR_MS = 3_600_000;
let at = Date.parse('2026-03-02T08:00:00Z');
const spine = spineOfFile(() => ({ now: () => at, toml: '[billing]\nsweep_ms = 100\n' }));
beforeEach(() => {
  at += 30 * 24 * HOUR_MS;
});

let names = 0;
async function signedIn(): Promise<{ browser: Browser; key: string; hash: string }> {
  names += 1;
  const { key, hash } = await spine.tenant(`owner-${names}`, '0');
  const browser = openBrowser(spine.origin);
  expect((await browser.ask('POST', '/api/v1/auth/session', { api_key: key })).status).toBe(200);
  return { browser, key, hash };
}
const statusOf = async (browser: Browser) => (await browser.ask('GET', '/api/v1/keys')).status;

test('a session that is not used for 12 hours is over, one that is used goes on', async () => {
  const [used, unused] = [await signedIn(), await signedIn()];
  at += 11 * HOUR_MS;
  expect(await statusOf(used.browser)).toBe(200);
  at += 2 * HOUR_MS;
  expect([await statusOf(used.browser), await statusOf(unused.browser)]).toEqual([200, 401]);
});

test('a session is over 7 days after the sign-in, however much it is used', async () => {
  const { browser } = await signedIn();
  const end = at + 7 * 24 * HOUR_MS;
  for (; at < end; at += 10 * HOUR_MS) expect(await statusOf(browser)).toBe(200);
  at = end - 1;
  expect(await statusOf(browser)).toBe(200);
  at = end;
  expect(await statusOf(browser)).toBe(401);
});

test.each([
  ['deleted', (key: string, hash: string) => change('DELETE', key, hash)],
  ['disabled', (key: string, hash: string) => change('PATCH', key, hash, { disabled: true })],
])('the session of a key that was %s is over at once', async (_what, end) => {
  const { browser, key, hash } = await signedIn();
  expect(await statusOf(browser)).toBe(200);
  expect(await end(key, hash)).toBe(200);
  const answers = [await browser.ask('GET', '/api/v1/keys'), await browser.ask('GET', '/api/v1/keys')];
  expect(answers.map(({ status }) => status)).toEqual([401, 401]);
  // Also once the gateway remembers that the key is no longer good.
  for (const { body } of answers) expect(body.error?.message).toBe('This session is over: sign in again');
});

async function change(method: string, key: string, hash: string, body?: object): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  return (await openBrowser(spine.origin).ask(method, `/api/v1/keys/${hash}`, body, headers)).status;
}

test('rows of sessions that are over are removed', async () => {
  const count = async () =>
    Number(
      (await spine.app.database.query({ name: 'test/sessions', text: 'SELECT COUNT(*) AS n FROM web_sessions' }))[0]![
        'n'
      ],
    );
  const { key, hash } = await signedIn();
  await signedIn();
  expect(await count()).toBeGreaterThanOrEqual(2);
  await change('DELETE', key, hash);
  at += 13 * HOUR_MS;
  await expect.poll(count, { timeout: 60_000, interval: 20 }).toBe(0);
});

test('a key has at most 50 sessions: a new one ends its oldest, and none of another key', async () => {
  const { browser, key } = await signedIn();
  const other = openBrowser(spine.origin);
  const made = await other.ask('POST', '/api/v1/keys', { label: 'other' }, { authorization: `Bearer ${key}` });
  await other.ask('POST', '/api/v1/auth/session', { api_key: made.body.key });
  at += 1;
  for (let one = 0; one < 50; one += 1)
    await openBrowser(spine.origin).ask(
      'POST',
      '/api/v1/auth/session',
      { api_key: key },
      { 'sec-fetch-site': undefined },
    );
  expect([await statusOf(browser), await statusOf(other)]).toEqual([401, 200]);
});

test('with the shortest idle time, a session that is always used goes on', async () => {
  const short = await startSpine({ now: () => at, toml: '[sessions]\nidle_ms = 60000\n' });
  try {
    const browser = openBrowser(short.origin);
    await browser.ask('POST', '/api/v1/auth/session', { api_key: short.key });
    for (let asked = 0; asked < 10; asked += 1) {
      at += 20_000;
      expect(await statusOf(browser)).toBe(200);
    }
    at += 60_000;
    expect(await statusOf(browser)).toBe(401);
  } finally {
    await short.stop();
  }
});
