import { expect, test } from 'vitest';
import { adHoc } from '../../../support/ad-hoc.ts';
import { ask, startSpine } from '../../../support/spine.ts';
import { encodeEnvelope, evmWallet, presign, solanaWallet, type TestWallet } from '../../../support/wallets.ts';
import { openBrowser, plainCookie, type Browser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

const spine = spineOfFile();

const nonceOf = async () =>
  (await openBrowser(spine.origin).ask<{ nonce: string }>('GET', '/api/v1/auth/nonce')).body.nonce;
const envelope = async (wallet: TestWallet, nonce: string | null) => encodeEnvelope(await presign(wallet, { nonce }));
const signIn = (browser: Browser, body: object) => browser.ask('POST', '/api/v1/auth/session', body);

test.each([
  ['EVM', evmWallet()],
  ['Solana', solanaWallet()],
])('a wallet of %s signs a browser in', async (_family, wallet) => {
  const browser = openBrowser(spine.origin);
  const siwx = await envelope(wallet, await nonceOf());
  const { status, cookie, body, headers } = await signIn(browser, { siwx });
  expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
  expect(cookie).toMatch(/^tollgate-\d+=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=604800$/);
  expect(body).toMatchObject({ signed_in_by: 'wallet', rights: 'full', step_up: 'wallet', key: null });
  expect(String(body['account']).toLowerCase()).toBe(wallet.accountId.toLowerCase());
  expect(Date.parse(body['expires_at'] as string) - Date.now()).toBeGreaterThan(6 * 86_400_000);

  const shown = await browser.ask('GET', '/api/v1/auth/session');
  expect([shown.status, shown.body]).toEqual([200, body]);
  const balance = await browser.ask('GET', '/api/v1/session/balance');
  expect([balance.status, balance.body['caip_account_id']]).toEqual([200, body['account']]);

  const other = openBrowser(spine.origin);
  expect((await signIn(other, { siwx })).body.error?.message).toContain('was used before');
  expect([other.cookie, (await other.ask('GET', '/api/v1/session/balance')).status]).toEqual([null, 401]);
});

test('a sign-in of a wallet needs a nonce of the gateway', async () => {
  const browser = openBrowser(spine.origin);
  const { status, body } = await signIn(browser, { siwx: await envelope(evmWallet(), null) });
  expect([status, body.error?.message]).toEqual([401, expect.stringContaining('needs a sign-in with a nonce')]);
});

test('an API key signs a browser in, which calls at the cost of its account', async () => {
  const browser = openBrowser(spine.origin);
  const { status, body } = await signIn(browser, { api_key: spine.key });
  expect(status).toBe(200);
  expect(body).toMatchObject({ account: spine.account, signed_in_by: 'api_key', rights: 'full', step_up: 'api_key' });
  const before = await spine.balance();
  const call = await browser.ask('POST', '/api/v1/chat/completions', ask('hello'));
  expect(call.status).toBe(200);
  await spine.quiet();
  expect((await spine.balance()).available).toBeLessThan(before.available);
  const { body: calls } = await browser.ask<{ data: { api_key: string }[] }>('GET', '/api/v1/generations?limit=1');
  expect(calls.data[0]!.api_key).toBe(body['key']);
});

test('a session of a limited key may what the key may', async () => {
  const { key, hash } = await spine.tenant('limited', '1', { limit: 1_000n });
  const browser = openBrowser(spine.origin);
  expect((await signIn(browser, { api_key: key })).body).toMatchObject({ rights: 'limited' });
  const { body } = await browser.ask<{ data: { hash: string }[] }>('GET', '/api/v1/keys');
  expect(body.data.map((one) => one.hash)).toEqual([hash]);
  expect((await browser.ask('POST', '/api/v1/keys', {})).status).toBe(403);
});

test.each([
  ['an unknown key', { api_key: 'svc-sk-v2-nothing' }, 401, 'Invalid API key'],
  ['the admin key', { api_key: 'svc-admin-nothing' }, 401, '/admin/v1/session'],
  ['garbage of a wallet', { siwx: '!' }, 401, 'base64'],
  ['nothing at all', {}, 400, ''],
  ['two proofs', { api_key: 'a', development: true }, 400, ''],
  ['the local developer of production', { development: true }, 403, 'development gateway'],
])('%s signs nobody in', async (_what, body, status, message) => {
  const browser = openBrowser(spine.origin);
  const answer = await signIn(browser, body);
  expect([answer.status, browser.cookie]).toEqual([status, null]);
  expect(answer.body.error?.message).toContain(message);
});

test('without a session it is said that there is none, and how one signs in', async () => {
  const { status, body } = await openBrowser(spine.origin).ask('GET', '/api/v1/auth/session');
  expect(status).toBe(200);
  expect(body).toMatchObject({ account: null, rights: null, ways: ['wallet', 'api_key'] });
});

test('a cookie that was there before the sign-in is never the one of the session', async () => {
  const attacker = openBrowser(spine.origin);
  await signIn(attacker, { api_key: (await spine.tenant('attacker', '0')).key });
  const planted = attacker.cookie!;
  const victim = openBrowser(spine.origin);
  victim.cookie = planted;
  const signedIn = await signIn(victim, { api_key: spine.key });
  expect(signedIn.status).toBe(200);
  expect(victim.cookie).not.toBe(planted);
  attacker.cookie = planted;
  expect((await attacker.ask('GET', '/api/v1/session/balance')).status).toBe(401);

  const invented = plainCookie(spine.origin);
  const other = openBrowser(spine.origin);
  other.cookie = invented;
  await signIn(other, { api_key: spine.key });
  expect(other.cookie).not.toBe(invented);
});

test('sessions are listed, ended one by one and all at once', async () => {
  const { key } = await spine.tenant('lister', '0');
  const [one, two, three] = [openBrowser(spine.origin), openBrowser(spine.origin), openBrowser(spine.origin)];
  for (const browser of [one, two, three]) await signIn(browser, { api_key: key });
  const list = (
    await one.ask<{ data: { id: string; current: boolean; client: string }[] }>('GET', '/api/v1/auth/sessions')
  ).body.data;
  expect(list).toHaveLength(3);
  expect(list.filter(({ current }) => current)).toHaveLength(1);
  expect(list[0]!.client).toBe('Browser of the tests');

  const { id } = (await two.ask<{ id: string }>('GET', '/api/v1/auth/session')).body;
  const stranger = openBrowser(spine.origin);
  await signIn(stranger, { api_key: (await spine.tenant('stranger', '0')).key });
  expect((await stranger.ask('DELETE', `/api/v1/auth/sessions/${id}`)).status).toBe(404);
  expect((await one.ask('DELETE', `/api/v1/auth/sessions/${id}`)).body).toEqual({ ended: 1 });
  expect((await two.ask('GET', '/api/v1/keys')).body.error?.message).toBe('This session is over: sign in again');

  expect((await three.ask('DELETE', '/api/v1/auth/session')).body).toEqual({ ended: 1 });
  expect(three.cookie).toBeNull();
  await signIn(three, { api_key: key });
  const program = { authorization: `Bearer ${key}`, cookie: undefined };
  expect((await one.ask('DELETE', '/api/v1/auth/session', undefined, program)).body.error?.message).toContain(
    'all=true',
  );
  expect((await one.ask('DELETE', '/api/v1/auth/session?all=true', undefined, program)).body).toEqual({ ended: 2 });
  for (const browser of [one, three]) expect((await browser.ask('GET', '/api/v1/keys')).status).toBe(401);
  expect((await stranger.ask('GET', '/api/v1/keys')).status).toBe(200);
});

test('a session that is over is taken off the browser', async () => {
  const browser = openBrowser(spine.origin);
  browser.cookie = plainCookie(spine.origin, 'B'.repeat(43));
  const { status, body } = await browser.ask('GET', '/api/v1/auth/session');
  expect([status, body['account'], browser.cookie]).toEqual([200, null, null]);
});

test('what pages read has a rate of its own, and does not use up that of calls', async () => {
  const { key } = await spine.tenant('reader', '1');
  const browser = openBrowser(spine.origin);
  await signIn(browser, { api_key: key });
  const page = await browser.ask('GET', '/api/v1/keys');
  expect(page.headers['x-ratelimit-limit-requests']).toBe('600');
  const call = await browser.ask('POST', '/api/v1/chat/completions', ask('hello'));
  expect([call.status, call.headers['x-ratelimit-limit-requests']]).toEqual([200, '60']);
});

test('many new wallets of one network cannot fill the table of sessions', async () => {
  const small = await startSpine({ toml: '[limits]\nanonymous_requests_per_minute = 1\nburst = 1\n' });
  try {
    const statuses: number[] = [];
    for (let signed = 0; signed < 4; signed += 1) {
      const browser = openBrowser(small.origin);
      const { nonce } = (await browser.ask<{ nonce: string }>('GET', '/api/v1/auth/nonce')).body;
      statuses.push((await signIn(browser, { siwx: await envelope(evmWallet(), nonce) })).status);
    }
    expect([statuses[0], statuses.at(-1)]).toEqual([200, 429]);
    const nonces = await small.app.database.query(adHoc('SELECT nonce FROM used_nonces'));
    expect(nonces).toHaveLength(statuses.filter((status) => status === 200).length);
    expect((await signIn(openBrowser(small.origin), { api_key: small.key })).status).toBe(200);
  } finally {
    await small.stop();
  }
});
