import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// A gateway in a home or office network, which a browser reaches over http by a name. The page has no secure context.

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test('a key signs in, the playground calls, and the call has its page', async () => {
  const { key } = await spine.tenant('home', '1');
  // Chromium tells that a header needs https.
  const origin = spine.origin.replace('127.0.0.1', 'plain.test');
  const visitor = await browser.visit({ origin, expected: /Cross-Origin-Opener-Policy/ });
  const { page } = visitor;
  await page.goto('/sign-in?next=/dashboard/keys');
  expect(await page.evaluate('isSecureContext')).toBe(false);
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
  await page.goto(`/playground?m=${encodeURIComponent(ask('').model)}`);
  await page.getByRole('textbox').fill('hello');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /charged/ }).click();
  await page.getByRole('link', { name: /^gen-/ }).click();
  await page.getByText('Browsers check signatures only over https and on this machine.').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
