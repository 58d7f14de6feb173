import { afterAll, beforeAll, expect, it } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { startSpine, type Spine } from '../../support/spine.ts';

// The guide as people see it. Its search is a script of the built pages.

let spine: Spine;
let origin: string;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine(), openBrowser()]);
  ({ origin } = spine);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

async function holds({ page, axe, overflow, problems }: Visitor): Promise<void> {
  expect(await page.locator('h1').count()).toBe(1);
  expect(await axe()).toEqual([]);
  expect(await overflow()).toBe(0);
  expect(problems).toEqual([]);
}

it.each([
  ['light', 1280],
  ['dark', 1280],
  ['light', 390],
  ['dark', 390],
] as const)('has no fault that axe finds, %s and %i pixels wide', async (theme, width) => {
  const visitor = await browser.visit({ origin, theme, width });
  for (const path of ['', '/use/chat', '/reference/configuration', '/how/calls-money', '/decisions']) {
    await visitor.page.goto(`/docs/guide${path}`);
    await visitor.page.locator('.search input').waitFor();
    await holds(visitor);
  }
  await visitor.close();
});

it('is searched with the keyboard alone, and asks no other host', async () => {
  const visitor = await browser.visit({ origin });
  const { page } = visitor;
  const asked: string[] = [];
  page.on('request', (request) => void asked.push(request.url()));
  await page.goto('/docs/guide');
  await page.keyboard.press('/');
  await page.keyboard.type('idempotency');
  const found = page.locator('.found a');
  await found.first().waitFor();
  await expect.poll(() => page.locator('.found [role=status]').textContent()).toMatch(/^\d+ places$/);
  await holds(visitor);
  const [title] = (await found.first().locator('b').textContent())!.split(' ›');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/docs\/guide\/\w/);
  expect(await page.title()).toContain(title);

  await page.keyboard.press('/');
  await page.keyboard.type('xyzzy plugh');
  await expect.poll(() => page.locator('.found [role=status]').textContent()).toContain('Nothing about');
  await page.keyboard.press('Escape');
  expect(await page.locator('.found').isHidden()).toBe(true);
  expect(asked.filter((each) => !each.startsWith(origin))).toEqual([]);
  await visitor.close();
});

it.each([
  ['how do I raise a rate limit', /limit/i],
  ['refund a customer', /credit|debit|account/i],
  ['rotate admin key', /rotate|admin/i],
  ['block a provider', /provider/i],
])('finds an answer to “%s”', async (question, title) => {
  const visitor = await browser.visit({ origin });
  const { page } = visitor;
  await page.goto('/docs/guide');
  await page.locator('.search input').fill(question);
  const first = page.locator('.found a').first();
  await first.waitFor();
  expect(await first.locator('b').textContent()).toMatch(title);
  expect(await first.getAttribute('href')).not.toMatch(/changelog|decisions/);
  await visitor.close();
});

it('shows the address of the gateway that sends it, except to a proxy in front of it', async () => {
  const visitor = await browser.visit({ origin });
  const { page } = visitor;
  const shown = async (path: string) => {
    await page.goto(`/docs/guide/${path}`);
    await page.getByRole('button', { name: 'Copy' }).first().waitFor();
    return (await page.locator('article code').allTextContents()).join('\n');
  };
  const chat = await shown('use/chat');
  expect(chat).toContain(`curl ${origin}/api/v1/chat/completions`);
  expect(chat).not.toContain('127.0.0.1:8402');
  await shown('start/ten-minutes');
  expect(await page.getByRole('link', { name: '/playground' }).getAttribute('href')).toBe(`${origin}/playground`);
  expect(await shown('use/realtime')).toContain(origin.replace('http', 'ws'));
  expect(await shown('run/reverse-proxy')).toContain('proxy_pass http://127.0.0.1:8402;');
  await visitor.close();
});

it('copies a block of code, whose button is always there', async () => {
  const visitor = await browser.visit({ origin });
  const { page } = visitor;
  await page.goto('/docs/guide/use/chat');
  const block = page.locator('.code').first();
  expect(await page.evaluate<string>("getComputedStyle(document.querySelector('.code button')).opacity")).toBe('1');
  await block.getByRole('button', { name: 'Copy' }).click();
  await block.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(copied).toBe(await block.locator('code').textContent());
  await visitor.close();
});

it('has its contents behind a fold on a phone, and a page for what is not there', async () => {
  const visitor = await browser.visit({ origin, width: 390, expected: /404/ });
  const { page } = visitor;
  await page.goto('/docs/guide/no-such-page');
  await holds(visitor);
  await page.getByText('Contents', { exact: true }).click();
  await page.getByRole('navigation', { name: 'Contents' }).getByRole('link', { name: 'Embeddings:' }).click();
  await page.waitForURL(/embeddings$/);
  await visitor.close();
});
