import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { MODEL, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// The list of a large market: few rows are in the document, a search is quick, and every row can be scrolled to.

const SERVICES = 2_000;

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
  const [offer] = spine.app.catalog.offers('model').filter(({ service }) => service === MODEL);
  spine.app.catalog.replace(
    'crowd',
    Array.from({ length: SERVICES - 1 }, (_, index) => {
      const service = `crowd/model-${String(index).padStart(4, '0')}`;
      return { ...offer!, id: `model/${offer!.provider.id}:${service}`, service, displayName: `Crowd ${index}` };
    }),
  );
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

test('a list of 2,000 services', async ({ annotate }) => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/marketplace');
  const rows = page.locator('tbody tr:not([aria-hidden])');
  await rows.first().waitFor();
  await expect.poll(() => page.locator('table').getAttribute('aria-rowcount')).toBe(String(SERVICES + 1));
  expect(await rows.count()).toBeLessThan(100);

  // From the key to the frame with the new rows.
  const took = await page.evaluate<number[]>(`(async () => {
    const field = document.querySelector('input[type=search]');
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    const times = [];
    for (const text of ['1', '19', '199', '1998', '199', '19', '1', '']) {
      const begun = performance.now();
      set.call(field, text);
      field.dispatchEvent(new Event('input', { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => { const channel = new MessageChannel(); channel.port1.onmessage = done; channel.port2.postMessage(0); }));
      times.push(performance.now() - begun);
    }
    return times;
  })()`);
  const median = took.toSorted((a, b) => a - b)[took.length >> 1]!;
  await annotate(`a search in ${SERVICES} services: median ${median.toFixed(1)} ms`);
  console.log(`a search in ${SERVICES} services takes ${took.map((ms) => ms.toFixed(1)).join(', ')} ms to its frame`);

  await page.getByRole('searchbox').fill('model-1998');
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByRole('searchbox').fill('');
  await expect.poll(() => rows.count()).toBeGreaterThan(20);
  await page.evaluate('scrollTo(0, document.body.scrollHeight)');
  await page.getByText('Crowd 1998').waitFor();
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
