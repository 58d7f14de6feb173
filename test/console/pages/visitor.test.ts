import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePlace, type Place } from '../../program/cli/tollgate.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';

// A visitor who has never been here finds a service and the code that calls it, on the gateway of `npm start`.

let place: Place;
let browser: TestBrowser;
let origin: string;
beforeAll(async () => {
  place = await makePlace();
  [, browser] = await Promise.all([place.gateway(['start']), openBrowser()]);
  origin = ((await place.read('dev.json')) as { readonly base_url: string }).base_url;
});
afterAll(async () => {
  await browser.close();
  await place.clear();
});

/** Models by the price of a token. */
const TOKENS = ['Demo: Embedding', 'Demo: Echo', 'Demo: Chat'];
/** Models of sound, which are compared by what a minute costs. */
const OTHERS = ['Demo: Transcription', 'Demo: Speech'];

const names = (visitor: Visitor) => visitor.page.locator('tbody tr td:first-child a').allTextContents();

test('finds a tool by what it does, sees its price and its arguments, and copies the code', async () => {
  const visitor = await browser.visit({ origin });
  const { page } = visitor;
  await page.goto('/');
  await page.getByRole('link', { name: 'Look at the marketplace' }).click();
  await page.getByRole('heading', { level: 1, name: 'Marketplace' }).waitFor();
  await expect.poll(() => names(visitor)).toHaveLength(9);

  await page.getByRole('searchbox').fill('dice');
  await page.getByRole('button', { name: /^Tools/ }).click();
  await expect.poll(() => names(visitor)).toEqual(['Demo: Tools']);
  await expect.poll(() => new URL(page.url()).search).toMatch(/^\?(?=.*kind=tool)(?=.*q=dice)/);
  await page.reload();
  await expect.poll(() => names(visitor)).toEqual(['Demo: Tools']);

  await page.getByRole('link', { name: 'Demo: Tools' }).click();
  await page.getByRole('heading', { level: 1, name: 'Demo: Tools' }).waitFor();
  expect(await page.title()).toBe('Demo: Tools · tollgate');
  await page.getByText('How many dice of how many sides').first().waitFor();
  const code = page.getByRole('region', { name: 'Code for curl' });
  await expect.poll(() => code.textContent()).toContain(`curl ${origin}/mcp/demo/tools`);
  expect(await code.textContent()).toContain('"name":"roll_dice","arguments":{"dice":"1d6"}');
  await page.getByRole('button', { name: 'Copy: Code for curl' }).click();
  const text = await code.textContent();
  await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(text);

  await page.getByRole('link', { name: 'Try it' }).click();
  await page.waitForURL('**/playground?m=demo%2Ftools&kind=tool');
  await page.goBack();
  await page.goBack();
  await expect.poll(() => names(visitor)).toEqual(['Demo: Tools']);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('with the keyboard alone: searches, sorts by price, opens the cheapest, changes the client', async () => {
  const visitor = await browser.visit({ origin });
  const { page } = visitor;
  const focused = () => page.evaluate<string>('document.activeElement.textContent || document.activeElement.type');
  const tabTo = async (text: string) => {
    for (let steps = 0; steps < 60; steps++) {
      await page.keyboard.press('Tab');
      if ((await focused()).startsWith(text)) return;
    }
    throw new Error(`the focus never came to ${text}`);
  };
  await page.goto('/marketplace');
  await page.getByRole('searchbox').waitFor();
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Skip to the content');
  await tabTo('search');
  await page.keyboard.type('demo');
  await tabTo('Models');
  await page.keyboard.press('Enter');
  await tabTo('Price');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('th[aria-sort]').getAttribute('aria-sort')).toBe('descending');
  await page.keyboard.press('Enter');
  await expect.poll(() => names(visitor)).toEqual([...TOKENS, ...OTHERS]);
  await tabTo('Demo: Echo');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Demo: Echo' }).waitFor();
  await tabTo('curl');
  await page.keyboard.press('ArrowRight');
  await expect.poll(focused).toBe('openai (JS)');
  await page.getByRole('region', { name: 'Code for openai (JS)' }).waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a search without a match says so, and leads back to all services', async () => {
  const visitor = await browser.visit({ origin, width: 390 });
  const { page } = visitor;
  await page.goto('/marketplace?q=nothing-of-this-name');
  await page.getByText('No service matches.').waitFor();
  await page.getByRole('button', { name: 'Show all services' }).click();
  await expect.poll(() => names(visitor)).toHaveLength(9);
  expect(new URL(page.url()).search).toBe('');
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('on a phone, which shows no head of the calls, the market is put in order by a choice', async () => {
  const visitor = await browser.visit({ origin, width: 390 });
  const { page } = visitor;
  await page.goto('/marketplace?kind=model');
  const order = page.getByLabel('Order');
  await order.selectOption('Dearest first');
  await expect.poll(() => names(visitor)).toEqual([...TOKENS, ...OTHERS].toReversed());
  await order.selectOption('Most used first');
  await expect.poll(() => new URL(page.url()).search).toBe('?kind=model');
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the chosen theme stays, on every page and before anything is painted', async () => {
  const visitor = await browser.visit({ origin, theme: 'light' });
  const { page } = visitor;
  const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  await page.goto('/marketplace');
  const light = await background();
  await page.getByRole('button', { name: 'Dark theme' }).click();
  await expect.poll(background).not.toBe(light);
  const dark = await background();
  for (const path of ['/providers', '/']) {
    await page.goto(path);
    expect(await background(), path).toBe(dark);
  }
  const choose = (name: string) => page.getByRole('button', { name, exact: true }).first();
  for (const path of ['/', '/docs/guide']) {
    await page.goto(path);
    expect(await choose('Dark theme').getAttribute('aria-pressed'), path).toBe('true');
    const before = await background();
    await choose('Light theme').click();
    expect(await background(), path).not.toBe(before);
    expect(await choose('Light theme').getAttribute('aria-pressed'), path).toBe('true');
    await choose('Dark theme').click();
  }
  await choose('Theme of the system').click();
  await page.goto('/marketplace');
  expect(await background()).toBe(light);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a service that is gone is a page that says so, and a gateway that does not answer is told with a way to try again', async () => {
  const visitor = await browser.visit({ origin, expected: /404|ERR_FAILED|Failed to load/ });
  const { page } = visitor;
  await page.goto('/agents/no/such');
  await page.getByRole('heading', { level: 1, name: 'There is no agent of this name.' }).waitFor();
  expect(await visitor.axe()).toEqual([]);
  await page.route('**/api/v1/providers', (route) => route.abort());
  await page.getByRole('link', { name: 'Providers' }).first().click();
  await page.getByRole('alert').getByText('The gateway does not answer').waitFor();
  expect(await visitor.axe()).toEqual([]);
  await page.unroute('**/api/v1/providers');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('link', { name: 'Demo', exact: true }).waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test.each([
  ['/models/demo/chat', 1280],
  ['/models/demo/chat', 390],
  ['/agents/demo/agent', 1280],
  ['/images/demo/image', 390],
  ['/tools/demo/tools', 1280],
])(
  'sees price, facts and code of %s, %i px wide, before the scripts are there, where they stay',
  async (path, width) => {
    const visitor = await browser.visit({ origin });
    const { page } = visitor;
    await page.setViewportSize({ width, height: 900 });
    let letGo = () => {};
    const held = new Promise<void>((done) => (letGo = done));
    await page.route('**/assets/frame-*.js', async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(path, { waitUntil: 'commit' });
    const first = page.locator('#first-paint pre');
    const before = { text: await first.textContent(), box: await first.boundingBox() };
    const column = page.locator('main .row-start-1');
    // The facts say how long ago the service was listed, which grows while the page loads.
    const words = async () => (await column.innerText()).replace(/\d+ \w+ ago|now/, 'ago');
    const beside = await words();
    const tryIt = await page.getByRole('link', { name: 'Try it' }).boundingBox();
    letGo();
    const pre = page.getByRole('region', { name: 'Code for curl' });
    await pre.waitFor();
    expect(await page.locator('#first-paint').count()).toBe(0);
    expect(before.text).toContain(`curl ${origin}/`);
    expect(beside).toMatch(/^Price\n.*\nFacts\n/s);
    expect(await words()).toBe(beside);
    const { x, y } = (await page.getByRole('link', { name: 'Try it' }).boundingBox())!;
    expect([x, Math.abs(y - tryIt!.y) <= 8]).toEqual([tryIt!.x, true]);
    // What comes from another question, such as the arguments of a tool, may change it later.
    if (!path.startsWith('/tools/')) expect(await pre.textContent()).toBe(before.text);
    const box = await pre.boundingBox();
    expect([before.box!.x, before.box!.width]).toEqual([box!.x, box!.width]);
    expect(Math.abs(before.box!.y - box!.y)).toBeLessThanOrEqual(8);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  },
);
