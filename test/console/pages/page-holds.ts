import { expect } from 'vitest';
import type { Visitor } from '../../support/browser.ts';

/** Both themes and both widths, each once. The deep run has all four together. */
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

/** Asserts that axe finds no fault and nothing scrolls sideways, in both themes, wide and narrow. */
export async function looksRight({ page, axe, overflow }: Visitor): Promise<void> {
  for (const [theme, width] of LOOKS) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height: width === 1280 ? 900 : 800 });
    expect(await axe(), `${theme}, ${width} px`).toEqual([]);
    expect(await overflow(), `${width} px`).toBe(0);
  }
}

/**
 * Asserts what holds for each page: it looks right, also on the smallest screen, no message is in the console, nothing
 * breaks the policy, and it has one heading of the first level and a title.
 */
export async function pageHolds(visitor: Visitor): Promise<void> {
  const { page, overflow, problems, settled } = visitor;
  await settled();
  expect(await page.locator('h1').count()).toBe(1);
  expect(await page.title()).toMatch(/tollgate/);
  await looksRight(visitor);
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(), '320 px').toBe(0);
  expect(problems).toEqual([]);
}
