import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../support/browser.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What holds for each page: no message in the console, no violation of the policy, no fault that axe finds, no
// sideways scrolling, one heading of the first level, a title.

const PAGES = [
  '/',
  '/marketplace',
  `/models/${MODEL}`,
  '/providers',
  '/rankings',
  '/playground',
  '/sign-in',
  '/dashboard',
];

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

describe.each(['light', 'dark'] as const)('in the %s theme', (theme) => {
  test.each(PAGES)('%s', async (path) => {
    const visitor = await browser.visit({ origin: spine.origin, theme });
    await visitor.page.goto(path);
    await visitor.page.locator('main h1').waitFor();
    await visitor.page.waitForLoadState('networkidle');
    expect(await visitor.page.locator('h1').count()).toBe(1);
    expect(await visitor.page.title()).toMatch(/tollgate/);
    expect(await visitor.axe()).toEqual([]);
    for (const width of [390, 320]) {
      await visitor.page.setViewportSize({ width, height: 800 });
      expect(await visitor.overflow(), `at ${width} px`).toBe(0);
    }
    expect(await visitor.axe()).toEqual([]);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  });
});
