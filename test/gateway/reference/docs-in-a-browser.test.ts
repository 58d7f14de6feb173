import { expect, onTestFinished, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { openBrowser } from '../../support/browser.ts';
import { startSpine } from '../../support/spine.ts';

test('/docs shows every chapter in a real browser, under its own content security policy', async () => {
  const [spine, browser] = await Promise.all([startSpine(), openBrowser()]);
  onTestFinished(async () => {
    await browser.close();
    await spine.stop();
  });
  const visitor = await browser.visit({ origin: spine.origin });
  visitor.page.setDefaultTimeout(atThisLoad(30_000));
  await visitor.page.goto('/docs');
  const { tags } = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as {
    readonly tags: readonly { readonly name: string }[];
  };
  for (const { name } of tags) await visitor.page.locator(`[data-tag="${name}"]`).first().waitFor();
  expect(tags.length).toBeGreaterThan(5);
  expect(visitor.problems).toEqual([]);
});
