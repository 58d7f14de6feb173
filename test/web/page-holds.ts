import { expect } from 'vitest';
import type { Visitor } from '../support/browser.ts';

/** The wide page by day and the narrow one by night have every rule of the styles; the deep run has the other two. */
const LOOKS =
  process.env['TOLLGATE_DEEP'] === '1'
    ? ([
        ['light', 1280],
        ['dark', 1280],
        ['dark', 390],
        ['light', 390],
      ] as const)
    : ([
        ['light', 1280],
        ['dark', 390],
      ] as const);

/**
 * Asserts what holds for each page, in both themes, wide and narrow: no message in the console, no violation of the
 * policy, no fault that axe finds, no sideways scrolling, one heading of the first level, a title.
 */
export async function pageHolds({ page, axe, overflow, problems, settled }: Visitor): Promise<void> {
  await settled();
  expect(await page.locator('h1').count()).toBe(1);
  expect(await page.title()).toMatch(/tollgate/);
  for (const [theme, width] of LOOKS) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: width === 1280 ? 900 : 800 });
    expect(await axe(), `${theme}, ${width} px`).toEqual([]);
    expect(await overflow(), `${width} px`).toBe(0);
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(), '320 px').toBe(0);
  expect(problems).toEqual([]);
}
