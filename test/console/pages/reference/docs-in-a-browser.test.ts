import { expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../../../support/at-this-load.ts';
import { openBrowser } from '../../../support/browser.ts';
import { startSpine } from '../../../support/spine.ts';

test('/docs shows every chapter in a real browser, under its own content security policy', async () => {
  const [spine, browser] = await Promise.all([startSpine(), openBrowser()]);
  onTestFinished(async () => {
    await browser.close();
    await spine.stop();
  });
  const visitor = await browser.visit({ origin: spine.origin });
  await visitor.page.goto('/docs');
  const { tags } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
    readonly tags: readonly { readonly name: string }[];
  };
  // Swagger UI keeps only what is in view of a document with so many operations.
  const seen = new Set<string | null>();
  const unseen = async () => {
    const shown = visitor.page.locator('[data-tag]');
    for (const name of await shown.evaluateAll((all) => all.map((one) => one.getAttribute('data-tag')))) seen.add(name);
    await visitor.page.mouse.wheel(0, 400);
    return tags.filter(({ name }) => !seen.has(name));
  };
  await expect.poll(unseen, { timeout: atThisLoad(60_000), interval: 50 }).toEqual([]);
  expect(tags.length).toBeGreaterThan(5);
  expect(visitor.problems).toEqual([]);
});
