import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

// A visitor may come before the provider of a service does, for example directly after the start of a gateway.

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED, mode: 'development' }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

test('the playground shows a service that comes later, without a reload of the page', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/playground?m=late/model');
  await page.getByText('Nobody offers this now.').waitFor();
  spine.writeFile(UNHURRIED + modelBlock({ name: 'late/model', provider: 'Late', url: spine.provider.url }));
  const reloaded = await fetch(`${spine.origin}/admin/v1/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  expect(reloaded.status).toBe(200);
  await page.getByText('Nobody offers this now.').waitFor({ state: 'detached' });
  await page.getByRole('textbox').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
