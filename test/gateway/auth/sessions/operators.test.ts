import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { openBrowser, type Browser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

let at = Date.parse('2026-03-02T08:00:00Z');
const spine = spineOfFile(() => ({ now: () => at }));

const signIn = (browser: Browser, key = spine.adminKey, headers: Record<string, string | undefined> = {}) =>
  browser.ask('POST', '/admin/v1/session', undefined, { authorization: `Bearer ${key}`, ...headers });
const read = async (browser: Browser, headers: Record<string, string | undefined> = {}) =>
  (await browser.ask('GET', '/admin/v1/accounts', undefined, headers)).status;

test('the admin key begins a session of an hour, which reads', async () => {
  const browser = openBrowser(spine.origin);
  expect((await browser.ask('GET', '/admin/v1/session')).body).toEqual({
    signed_in: false,
    administrator: null,
    changes: false,
    expires_at: null,
  });
  expect(await read(browser)).toBe(401);
  const { status, cookie, body } = await signIn(browser);
  expect([status, body['signed_in']]).toEqual([200, true]);
  expect(cookie).toMatch(/^tollgate-admin-\d+=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=3600$/);
  expect(await read(browser)).toBe(200);
  expect((await browser.ask('GET', '/admin/v1/session')).body).toMatchObject({
    signed_in: true,
    administrator: { id: 'root', roles: null },
  });
  at += 3_600_000;
  expect(await read(browser)).toBe(401);
});

test('a key with roles begins a session with its rights, which ends with the key', async () => {
  const browser = openBrowser(spine.origin);
  const byRoot = { authorization: `Bearer ${spine.adminKey}` };
  const fields = { label: 'ada', roles: ['configure'], expires_at: new Date(at + 1_800_000).toISOString() };
  const made = await openBrowser(spine.origin).ask('POST', '/admin/v1/admin-keys', fields, byRoot);
  const { key, data } = made.body as unknown as { readonly key: string; readonly data: { readonly id: string } };
  const administrator = { id: data.id, label: 'ada', roles: ['configure'] };
  expect((await signIn(browser, key)).body).toMatchObject({ signed_in: true, administrator });
  expect(await read(browser)).toBe(200);
  expect((await browser.ask('GET', '/admin/v1/session')).body).toMatchObject({ administrator, changes: false });
  expect((await browser.ask('POST', '/admin/v1/reload')).status).toBe(401);
  await openBrowser(spine.origin).ask('DELETE', `/admin/v1/admin-keys/${data.id}`, undefined, byRoot);
  expect(await read(browser)).toBe(401);
  expect((await browser.ask('GET', '/admin/v1/session')).body).toMatchObject({ signed_in: false });

  const expiring = await openBrowser(spine.origin).ask('POST', '/admin/v1/admin-keys', fields, byRoot);
  await signIn(browser, (expiring.body as unknown as { readonly key: string }).key);
  expect(await read(browser)).toBe(200);
  at += 1_800_000;
  expect(await read(browser)).toBe(401);
  expect((await signIn(browser, key)).status).toBe(401);
});

test('a change needs the admin key itself', async () => {
  const browser = openBrowser(spine.origin);
  await signIn(browser);
  const path = `/admin/v1/accounts/${encodeURIComponent(spine.account)}/credit`;
  const credit = { amount_usd: 5, reference: 'stolen' };
  const { status, body } = await browser.ask('POST', path, credit);
  expect([status, body.error?.message]).toEqual([401, expect.stringContaining('A session is not enough')]);
  const withKey = await browser.ask('POST', path, credit, { authorization: `Bearer ${spine.adminKey}` });
  expect(withKey.status).toBe(200);
});

test('requests of other sites are refused', async () => {
  const browser = openBrowser(spine.origin);
  expect((await signIn(browser, spine.adminKey, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await signIn(browser, spine.adminKey, { 'x-tollgate-web': undefined })).status).toBe(403);
  await signIn(browser);
  expect(await read(browser, { 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await read(browser, { 'sec-fetch-site': undefined, 'x-tollgate-web': undefined })).toBe(403);
  expect((await browser.ask('DELETE', '/admin/v1/session', undefined, { 'sec-fetch-site': 'cross-site' })).status).toBe(
    403,
  );
});

test('the session is of the admin API alone, and ends with its sign-out', async () => {
  const browser = openBrowser(spine.origin);
  await signIn(browser);
  expect((await browser.ask('GET', '/api/v1/keys')).status).toBe(401);
  expect((await browser.ask('GET', '/metrics')).status).toBe(401);
  const stolen = browser.cookie!;
  // The secret of one kind of session opens nothing of the other.
  expect((await browser.ask('GET', '/api/v1/keys', undefined, { cookie: stolen.replace('-admin', '') })).status).toBe(
    401,
  );
  await browser.ask('DELETE', '/admin/v1/session');
  expect(browser.cookie).toBeNull();
  expect(await read(browser, { cookie: stolen })).toBe(401);
});

test('a session of an account does not open the admin API', async () => {
  const browser = openBrowser(spine.origin);
  await browser.ask('POST', '/api/v1/auth/session', { api_key: spine.key });
  expect(await read(browser)).toBe(401);
  expect(await read(browser, { cookie: browser.cookie!.replace('tollgate-', 'tollgate-admin-') })).toBe(401);
});

test('nobody between keeps what a session reads, and the database has no plain digest of the admin key', async () => {
  const browser = openBrowser(spine.origin);
  await signIn(browser);
  expect((await browser.ask('GET', '/admin/v1/accounts')).headers['cache-control']).toBe('no-store');
  const rows = await spine.app.database.query({
    name: 'test/admin-digest',
    text: "SELECT key_hash FROM web_sessions WHERE signed_in_by = 'admin_key'",
  });
  const digests = rows.map((row) => row['key_hash']);
  expect(digests).toEqual(digests.map(() => expect.stringMatching(/^(?:roles:)?[0-9a-f]{64}$/)));
  expect(digests).not.toContain(hash('sha256', spine.adminKey));
});

test('a wrong key signs nobody in', async () => {
  const browser = openBrowser(spine.origin);
  expect((await signIn(browser, 'svc-admin-wrong')).status).toBe(401);
  expect(browser.cookie).toBeNull();
});
