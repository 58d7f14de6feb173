import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { openBrowser, type TestBrowser } from '../../../support/browser.ts';
import { newDataDirectory } from '../../../support/data-directory.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { ask, type Spine, startSpine, UNHURRIED } from '../../../support/spine.ts';

// The gateway stops while an operator looks: the figures stay with their time, a page that was not loaded yet says what
// is wrong, and all of it comes back with the gateway.

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

test('a gateway that stops in the middle, and is there again', async () => {
  await (await spine.post('/chat/completions', ask('hello'))).text();
  const visitor = await browser.visit({
    origin: spine.origin,
    expected: /Failed to load resource|Failed to fetch dynamically imported module/,
  });
  const { page } = visitor;
  await page.goto('/admin');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  await page.getByRole('heading', { name: 'Money at rest' }).waitFor();
  await spine.stop();

  await page.getByText(/^The gateway does not answer\. These figures are of /).waitFor({ timeout: atThisLoad(60_000) });
  await page.getByRole('heading', { name: 'Money at rest' }).waitFor();
  expect(await visitor.axe()).toEqual([]);
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.getByText('The gateway does not answer').waitFor();
  await page.getByRole('button', { name: 'Try again' }).waitFor();
  expect(await visitor.axe()).toEqual([]);

  spine = await start();
  await page.getByRole('table', { name: 'Changes by administrators' }).waitFor({ timeout: atThisLoad(60_000) });
  await page.getByRole('tab', { name: 'Home' }).click();
  await page.getByRole('heading', { name: 'Money at rest' }).waitFor();
  expect(await page.getByText('does not answer').count()).toBe(0);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
