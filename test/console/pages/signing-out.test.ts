import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

/** A page where somebody is signed in with the key. `path` is the sign-in's. */
async function signedIn(path: string, key: string, body?: object): Promise<Visitor> {
  const visitor = await browser.visit({ origin: spine.origin, expected: /50[0-9]|40[0-9]/ });
  await visitor.page.goto('/sign-in');
  const headers = { 'content-type': 'application/json', 'x-tollgate-web': '1', authorization: `Bearer ${key}` };
  const init = JSON.stringify({ method: 'POST', headers, body: JSON.stringify(body ?? {}) });
  await visitor.page.evaluate(`fetch('${path}', ${init}).then(() => localStorage.setItem('tollgate.signed-in', '1'))`);
  return visitor;
}
const FAILED = { status: 503, json: { error: { message: 'The database is away', type: 'service_unavailable' } } };

test('a sign-out that failed says so, and the account stays', async () => {
  const { page, close } = await signedIn('/api/v1/auth/session', spine.key, { api_key: spine.key });
  await page.goto('/dashboard');
  await page.route('**/api/v1/auth/session', (route) =>
    route.request().method() === 'DELETE' ? route.fulfill(FAILED) : route.continue(),
  );
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are still signed in').waitFor();
  expect(new URL(page.url()).pathname).toBe('/dashboard');
  await page.unrouteAll();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL('**/sign-in');
  await close();
});

test('after the sign-out of an operator no account is on the screen', async () => {
  const { page, close } = await signedIn('/admin/v1/session', spine.adminKey);
  await page.goto('/admin?tab=accounts');
  await page.getByRole('table').first().waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Sign in with an admin key of this gateway.').waitFor();
  expect(await page.getByRole('table').count()).toBe(0);
  await close();
});

test('the head of every page says which operator is signed in, and signs out', async () => {
  const { page, close } = await signedIn('/admin/v1/session', spine.adminKey);
  await page.evaluate(`localStorage.removeItem('tollgate.signed-in')`);
  const head = page.getByRole('banner');
  for (const path of ['/admin', '/marketplace']) {
    await page.goto(path);
    await head.getByRole('link', { name: 'Admin key' }).waitFor();
    expect(await head.getByRole('link', { name: 'Sign in' }).count(), path).toBe(0);
  }
  await page.goto('/');
  await head.getByRole('link', { name: 'Operator' }).waitFor();
  expect(await head.getByRole('link', { name: 'Sign in' }).count()).toBe(0);
  await head.getByRole('link', { name: 'Operator' }).click();
  await head.getByRole('link', { name: 'Admin key' }).waitFor();
  await page.route('**/admin/v1/session', (route) =>
    route.request().method() === 'DELETE' ? route.fulfill(FAILED) : route.continue(),
  );
  await head.getByRole('button', { name: 'Sign out' }).click();
  await head.getByText('You are still signed in').waitFor();
  await page.unrouteAll();
  await head.getByRole('button', { name: 'Sign out' }).click();
  await head.getByRole('link', { name: 'Sign in' }).waitFor();
  expect(await head.getByRole('link', { name: 'Admin key' }).count()).toBe(0);
  await close();
});

test('the form for API keys takes the key of an operator too, also one with roles', async () => {
  const made = await fetch(`${spine.origin}/admin/v1/admin-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ label: 'night shift', roles: ['read'] }),
  });
  const { key } = (await made.json()) as { readonly key: string };
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/sign-in');
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in with the key' }).click();
  await page.getByRole('banner').getByRole('link', { name: 'night shift' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/admin');
  await page.getByText('Money at rest').waitFor();
  await visitor.close();
});

test('a sign-in does not lead to another site', async () => {
  const { page, close } = await signedIn('/api/v1/auth/session', spine.key, { api_key: spine.key });
  for (const next of [
    '/%09/evil.example',
    '//evil.example',
    '/%5Cevil.example',
    'https://evil.example',
    '/.//evil.example',
  ]) {
    await page.goto(`/sign-in?next=${next}`);
    expect(await page.getByRole('link', { name: 'Go on' }).getAttribute('href'), next).toBe('/dashboard');
  }
  await close();
});

test('another site neither frames a page of the account, nor reads with its cookie, nor ends its session', async () => {
  const { page, close } = await signedIn('/api/v1/auth/session', spine.key, { api_key: spine.key });
  const site = createServer((_request, answer) => {
    answer.setHeader('content-type', 'text/html');
    answer.end(`<title>another site</title><iframe src="${spine.origin}/dashboard"></iframe>
      <form method="post" enctype="text/plain" target="out" action="${spine.origin}/api/v1/auth/session"><input name='{"api_key":"' value='"}'></form><iframe name="out"></iframe>`);
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  try {
    // The other name of this host is another site: the cookie of the session is for 127.0.0.1.
    await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`, { waitUntil: 'networkidle' });
    const frame = page.frames().find((each) => each !== page.mainFrame() && each.name() !== 'out')!;
    // The browser's own error page may have a heading, and has no navigation.
    expect(await frame.locator('nav').count()).toBe(0);
    const read = `fetch('${spine.origin}/api/v1/session/balance', { credentials: 'include' }).then(() => 'read', () => 'refused')`;
    expect(await page.evaluate(read)).toBe('refused');
    const session = `${spine.origin}/api/v1/auth/session`;
    // The browser asks first whether it may, and is told no.
    const end = `fetch('${session}', { method: 'DELETE', credentials: 'include' }).then(() => 'ended', () => 'refused')`;
    expect(await page.evaluate(end)).toBe('refused');
    const posted = page.waitForResponse(session);
    await page.evaluate(`document.forms[0].submit()`);
    expect((await posted).status()).toBe(400);
    expect(await (await posted).text()).toContain('Send the body as JSON');
    await page.goto(`${spine.origin}/dashboard`);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
  } finally {
    site.close();
    await close();
  }
});
