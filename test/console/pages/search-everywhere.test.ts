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

test('what is typed while the front page opens it comes into it', async () => {
  const { page, problems, close } = await browser.visit({ origin: spine.origin });
  const [asked, answered, scripts] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
  ];
  await page.route('**/marketplace', async (route) => {
    asked.resolve();
    await answered.promise;
    await route.continue();
  });
  await page.route(/assets\/(?!early).*\.(?:js|css)$/, async (route) => {
    await scripts.promise;
    await route.continue();
  });
  await page.goto('/');
  await page.keyboard.press('Control+k');
  await asked.promise;
  // On the page before, then on a page without its styles and its app.
  await page.keyboard.type('re f');
  answered.resolve();
  await page.waitForURL('**/marketplace#search', { waitUntil: 'commit' });
  await expect.poll(() => page.evaluate('window.tollgateEarly !== undefined')).toBe(true);
  await page.keyboard.type('un d');
  scripts.resolve();
  const box = page.getByRole('combobox', { name: 'Search everything' });
  await box.waitFor();
  await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe('Search everything');
  await page.keyboard.type('s');
  expect(await box.inputValue()).toBe('re fun ds');
  // The next page begins without words.
  await page.goto('/marketplace');
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
  expect(problems).toEqual([]);
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

test('what is typed before the box is there comes into it', async () => {
  const { page, problems, settled, close } = await browser.visit({ origin: spine.origin });
  const { promise: typed, resolve: goOn } = Promise.withResolvers<void>();
  await page.route(/everything|search\.json/, async (route) => {
    await typed;
    await route.continue();
  });
  await page.goto('/rankings');
  await settled();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('mark et');
  goOn();
  const box = page.getByRole('combobox', { name: 'Search everything' });
  await box.waitFor();
  await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe('Search everything');
  await page.keyboard.type('place');
  expect(await box.inputValue()).toBe('mark etplace');
  // The next search begins without words.
  for (let press = 0; press < 2; press++) await page.keyboard.press('Escape');
  // The browser hides it first. The page opens another one after it took this one away.
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await box.waitFor();
  expect(await box.inputValue()).toBe('');
  expect(problems).toEqual([]);
  await close();
});
