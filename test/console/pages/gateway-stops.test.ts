import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { newDataDirectory } from '../../support/data-directory.ts';
import { findFreePort } from '../../support/free-port.ts';
import { someOf } from '../../support/some-of.ts';
import { ask, MODEL, type Spine, startSpine, UNHURRIED } from '../../support/spine.ts';
import { looksRight } from './page-holds.ts';

// The gateway stops while somebody looks: what is shown stays, with its time, a page that was not loaded yet says what
// is wrong, and all of it comes back with the gateway.

const OLD = /^The gateway does not answer\. What you see is of /;
const ACCOUNT = 'account=tollgate%3Alocal%3Aweek';

/** Pages by who is signed in. `CALL` and `PROVIDER` stand for an id. */
const PAGES = {
  operator: [
    '/admin',
    '/admin?tab=accounts',
    `/admin?tab=accounts&${ACCOUNT}`,
    '/admin?tab=accounts&call=CALL',
    '/admin?tab=usage',
    '/admin?tab=services',
    '/admin?tab=providers',
    '/admin?tab=providers&provider=PROVIDER',
    '/admin?tab=gateways',
    '/admin?tab=changes',
  ],
  consumer: [
    '/dashboard',
    '/dashboard/calls',
    '/dashboard/calls/CALL',
    '/dashboard/activity',
    '/dashboard/keys',
    '/dashboard/balance',
    '/dashboard/statement',
    '/dashboard/organisation',
    '/dashboard/sessions',
    '/marketplace',
    `/models/${MODEL}`,
    '/providers',
    '/rankings',
    `/playground?m=${MODEL}`,
  ],
} as const;

let browser: TestBrowser;
let spine: Spine;
let start: () => Promise<Spine>;
const dataDir = newDataDirectory();
beforeAll(async () => {
  const port = await findFreePort();
  start = () => startSpine({ toml: `${UNHURRIED}\n[analytics]\nevery_ms = 50\n`, port, dataDir });
  [spine, browser] = await Promise.all([start(), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  rmSync(dataDir, { recursive: true });
});

const EXPECTED = /Failed to load resource|Failed to fetch dynamically imported module|ERR_CONNECTION/;

async function signIn(visitor: Visitor, who: keyof typeof PAGES, key: string): Promise<void> {
  const { page } = visitor;
  await page.goto(who === 'operator' ? '/admin' : '/sign-in?next=%2Fdashboard');
  await page.getByLabel(who === 'operator' ? 'Admin key' : 'API key', { exact: true }).fill(key);
  await page
    .getByRole('button', { name: who === 'operator' ? 'Sign in as the operator' : 'Sign in with the key' })
    .click();
  await page
    .getByRole(who === 'operator' ? 'tab' : 'navigation', { name: who === 'operator' ? 'Home' : 'Account' })
    .waitFor();
}

/** Without that of alerts, of which there may be one because the gateway stopped. */
const headings = async (visitor: Visitor) =>
  (await visitor.page.locator('main :is(h1, h2)').allTextContents()).filter((text) => !text.startsWith('Alert'));

/** Lets the time of the page go on until it says that the gateway does not answer, or no longer says so. */
async function untilOld({ page }: Visitor, isOld: boolean): Promise<void> {
  const isThere = async () => {
    await page.clock.fastForward(61_000);
    // As if the reader came back from another tab, which reads again what is shown.
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    return (await page.getByText(OLD).count()) > 0;
  };
  await expect.poll(isThere, { timeout: atThisLoad(60_000), interval: 300 }).toBe(isOld);
}

test('every page says that what it shows is old, and is right again with the gateway', async () => {
  const { key } = await spine.tenant('week', '10');
  const answer = await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` });
  const { id: call } = (await answer.json()) as { readonly id: string };
  const providers = await fetch(`${spine.origin}/admin/v1/services`, {
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  const { data: offers } = (await providers.json()) as { readonly data: readonly { readonly provider: string }[] };
  const visitors: { readonly path: string; readonly visitor: Visitor; readonly before: readonly string[] }[] = [];
  for (const who of ['operator', 'consumer'] as const) {
    for (const pattern of someOf<string>(PAGES[who], 3, 1)) {
      const path = pattern.replace('CALL', call).replace('PROVIDER', encodeURIComponent(offers[0]!.provider));
      const visitor = await browser.visit({ origin: spine.origin, expected: EXPECTED });
      await visitor.page.clock.install();
      await signIn(visitor, who, who === 'operator' ? spine.adminKey : key);
      await visitor.page.goto(path);
      await visitor.settled();
      visitors.push({ path, visitor, before: await headings(visitor) });
    }
  }
  await spine.stop();
  for (const { path, visitor, before } of visitors) {
    await untilOld(visitor, true);
    expect(await headings(visitor), path).toEqual(before);
    await looksRight(visitor);
  }
  spine = await start();
  for (const { path, visitor, before } of visitors) {
    await untilOld(visitor, false);
    expect(await headings(visitor), path).toEqual(before);
    expect(visitor.problems, path).toEqual([]);
    await visitor.close();
  }
});

test('a page that was not loaded yet says what is wrong, and comes with the gateway', async () => {
  const visitor = await browser.visit({ origin: spine.origin, expected: EXPECTED });
  const { page } = visitor;
  await signIn(visitor, 'operator', spine.adminKey);
  await page.getByRole('heading', { name: 'Money at rest' }).waitFor();
  await spine.stop();
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.getByText('The gateway does not answer').waitFor();
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  expect(await visitor.axe()).toEqual([]);
  spine = await start();
  await page.getByRole('table', { name: 'Changes by administrators' }).waitFor({ timeout: atThisLoad(60_000) });
  await page.getByRole('tab', { name: 'Home' }).click();
  await page.getByRole('heading', { name: 'Money at rest' }).waitFor();
  await expect.poll(() => page.getByText('does not answer').count()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
