import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { startSpine, UNHURRIED, MODEL, type Spine } from '../../support/spine.ts';
import { looksRight } from './page-holds.ts';

// Ctrl-K opens one search from every page: services, pages, the guide, and calls by their id.

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

async function search(visitor: Visitor, words: string, first: RegExp): Promise<void> {
  const { page } = visitor;
  const box = page.getByRole('combobox', { name: 'Search everything' });
  await box.waitFor();
  await box.fill(words);
  await page.getByRole('option', { name: first }).first().waitFor();
  // What was typed has been ranked once the place is the first of the list.
  await expect.poll(() => page.getByRole('option').first().textContent()).toMatch(first);
  await page.keyboard.press('Enter');
}

test('a page, a service, a question and a call are found from any page by the keyboard alone', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page, problems, close } = visitor;
  await page.goto('/rankings');
  await visitor.settled();
  await page.keyboard.press('Control+k');
  await search(visitor, 'marketplace', /^Marketplace/);
  await page.waitForURL('**/marketplace');

  await page.keyboard.press('Control+k');
  await search(visitor, MODEL, new RegExp(`^${MODEL}`));
  await page.waitForURL(`**/models/${MODEL}`);

  await page.keyboard.press('Control+k');
  await search(visitor, 'gen-abcdefghijkl000001', /^gen-abcdefghijkl000001/);
  await page.waitForURL('**/dashboard/calls/gen-abcdefghijkl000001');

  await page.goto('/marketplace');
  await visitor.settled();
  await page.keyboard.press('Control+k');
  await search(visitor, 'refund a customer', /^Refund a call/);
  await page.waitForURL('**/docs/guide/run/refunds');
  expect(problems).toEqual([]);
  await close();
});

test('the front page opens it too, its dialog looks right, and Escape closes it', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page, close } = visitor;
  await page.goto('/');
  await page.keyboard.press('Control+k');
  await page.waitForURL('**/marketplace#search');
  await page.getByRole('combobox', { name: 'Search everything' }).fill('withdraw');
  await page
    .getByRole('option', { name: /Withdraw/ })
    .first()
    .waitFor();
  await looksRight(visitor);
  // The first one empties the box.
  for (let press = 0; press < 2; press++) await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await close();
});

test('a page with a search of its own keeps the keys for it', async () => {
  const { page, close } = await browser.visit({ origin: spine.origin });
  await page.goto('/docs');
  await page.getByRole('searchbox', { name: 'Search the API' }).waitFor();
  await page.keyboard.press('Control+k');
  await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe('Search the API');
  expect(await page.getByRole('dialog').isVisible()).toBe(false);
  await close();
});
