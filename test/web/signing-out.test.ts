import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../support/browser.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

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
  await page.goto('/admin');
  await page.getByRole('table').first().waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('Sign in with the admin key of this gateway.').waitFor();
  expect(await page.getByRole('table').count()).toBe(0);
  await close();
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
