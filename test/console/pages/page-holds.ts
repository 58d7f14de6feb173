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

/** From the smallest phone to a desk. Between 768 and 1280 pixels, columns and the navigation appear. */
const WIDTHS = [320, 360, 390, 768, 1024, 1280];

/** Pixels that a line of a name has at every width: about seven letters. */
const NAME_PX = 56;

/** On narrower screens a table may scroll sideways, after its names. */
const TABLES_FIT_FROM = 360;

/**
 * What is cut, one line each: controls of the header that leave the window, tables that scroll sideways, and names that
 * have less room than `NAME_PX`. The name of a row is the first text of its first column that is not for numbers. This
 * is text because it runs in the browser.
 */
const CUT = `(() => {
  const cut = [];
  const right = document.documentElement.clientWidth;
  for (const control of document.querySelectorAll('header :is(a, button, input)')) {
    const box = control.getBoundingClientRect();
    if (box.width > 0 && control.checkVisibility({ visibilityProperty: true }) && (box.left < 0 || box.right > right))
      cut.push('header: ' + (control.ariaLabel ?? control.textContent) + ' ends at ' + box.right);
  }
  const isText = (node) => node.data.trim() !== '' && node.parentElement.closest('[aria-hidden], .sr-only') === null;
  for (const table of document.querySelectorAll('main table:has(caption)')) {
    const place = [...(table.tBodies[0]?.rows[0]?.cells ?? [])].findIndex(
      (cell) => cell.tagName === 'TD' && getComputedStyle(cell).textAlign !== 'right',
    );
    if (place < 0 || !table.checkVisibility()) continue;
    const frame = table.parentElement;
    // The browser rounds each column.
    const over = frame.scrollWidth - frame.clientWidth;
    if (over > 1 && innerWidth >= ${TABLES_FIT_FROM}) cut.push(table.caption.textContent + ': scrolls by ' + over);
    for (const { cells } of table.tBodies[0].rows) {
      const texts = cells[place] && document.createTreeWalker(cells[place], NodeFilter.SHOW_TEXT);
      while (texts?.nextNode() && !isText(texts.currentNode));
      if (!texts || !isText(texts.currentNode)) continue;
      const range = document.createRange();
      range.selectNodeContents(texts.currentNode);
      const whole = [...range.getClientRects()].reduce((sum, { width }) => sum + width, 0);
      let [left, end] = [0, right];
      for (let around = texts.currentNode.parentElement; around !== frame; around = around.parentElement) {
        const { display, overflowX } = getComputedStyle(around);
        if (display === 'inline') continue;
        const box = around.getBoundingClientRect();
        if (left === 0 || overflowX === 'hidden') [left, end] = [Math.max(left, box.left), Math.min(end, box.right)];
      }
      if (end - left < Math.min(whole, ${NAME_PX}) - 1)
        cut.push(table.caption.textContent + ': ' + Math.round(end - left) + ' px for ' + texts.currentNode.data);
    }
  }
  return cut;
})()`;

/**
 * Asserts what holds for each page: it looks right, nothing of it is cut at any width, no message is in the console,
 * nothing breaks the policy, and it has one heading of the first level and a title.
 */
export async function pageHolds(visitor: Visitor): Promise<void> {
  const { page, overflow, problems, settled } = visitor;
  await settled();
  expect(await page.locator('h1').count()).toBe(1);
  expect(await page.title()).toMatch(/tollgate/);
  await looksRight(visitor);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    expect(await overflow(), `${width} px`).toBe(0);
    expect(await page.evaluate<string[]>(CUT), `${width} px`).toEqual([]);
  }
  expect(problems).toEqual([]);
}
