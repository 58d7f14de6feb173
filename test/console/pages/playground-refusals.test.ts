import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { startScriptedUpstream } from '../../support/scripted-upstream.ts';
import { MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
});

/** Signs a visitor in with a key, and opens the playground. */
async function signIn(visitor: Visitor, key: string, service = MODEL): Promise<void> {
  await visitor.page.goto('/providers');
  await visitor.page.evaluate(
    `(async () => {
      await fetch('/api/v1/auth/session', {
        method: 'POST',
        headers: { 'x-tollgate-web': '1', 'content-type': 'application/json' },
        body: ${JSON.stringify(JSON.stringify({ api_key: key }))},
      });
      localStorage.setItem('tollgate.signed-in', '1');
    })()`,
  );
  await visitor.page.goto(`/playground?m=${service}`);
  await visitor.page.getByText('Balance').waitFor();
}

test('a balance that is too low leads to where money is added', async () => {
  const { key } = await spine.tenant('poor', '0.001');
  const visitor = await browser.visit({ origin: spine.origin, expected: /status of 402/ });
  const { page } = visitor;
  await signIn(visitor, key);
  await page.getByRole('textbox').fill('hello');
  await page.keyboard.press('Enter');
  await page.getByText('The balance is too low for this call.').waitFor();
  expect(await page.getByRole('link', { name: 'Add money' }).getAttribute('href')).toBe('/dashboard/balance');
  expect(await visitor.axe()).toEqual([]);
  // A cap that the balance covers is enough.
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByLabel('Most that a message may cost').fill('0.0005');
  await page.getByLabel('Longest answer').fill('20');
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('textbox').fill('hello again');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /charged/ }).waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
  expect(await spine.faults()).toEqual([]);
});

test('who is not signed in sees the form and the price, and is led to the sign-in and back', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto(`/playground?m=${MODEL}`);
  const link = page.getByRole('link', { name: 'Sign in to send' });
  await link.waitFor();
  expect(await link.getAttribute('href')).toBe(`/sign-in?next=${encodeURIComponent(`/playground?m=${MODEL}`)}`);
  expect(await page.getByText('$1.00 / $2.00 per 1M tokens in / out').count()).toBeGreaterThan(0);
  expect(await visitor.axe()).toEqual([]);
  await page.goto('/playground?m=no/such');
  await page.getByText('There is no service named no/such.').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('markup and links of a provider are text, and nothing of them runs or is fetched', async () => {
  const words = [
    '<img src="https://evil.example/x.png" onerror="alert(1)"> <script>alert(2)</script>\n\n',
    '[run](javascript:alert(3)) ![pixel](https://evil.example/pixel.png) [docs](https://example.com/docs)\n\n',
    '<a href="javascript:alert(4)">x</a>',
  ];
  const upstream = await startScriptedUpstream(() => ({
    words,
    usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
    message: { images: [{ image_url: { url: 'https://evil.example/image.png' } }] },
  }));
  const own = await startSpine({
    toml: UNHURRIED + modelBlock({ name: 'evil/model', provider: 'Evil', url: upstream.url }),
  });
  try {
    const visitor = await browser.visit({ origin: own.origin });
    const { page } = visitor;
    const elsewhere: string[] = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(own.origin)) elsewhere.push(request.url());
    });
    page.on('dialog', (dialog) => elsewhere.push(dialog.message()));
    await signIn(visitor, own.key, 'evil/model');
    await page.getByRole('textbox').fill('hello');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: /charged/ }).waitFor();
    expect(await page.getByText('<script>alert(2)</script>').count()).toBe(1);
    expect(await page.getByText('[run](javascript:alert(3))').count()).toBe(1);
    expect(await page.locator('main a[href^="javascript:"], main script, main img').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'docs' }).getAttribute('rel')).toContain('noopener');
    expect(elsewhere).toEqual([]);
    expect(visitor.problems).toEqual([]);
    await visitor.close();
  } finally {
    await own.stop();
  }
});

test('an answer without an end is stopped, and the page still works', async () => {
  const upstream = await startScriptedUpstream(() => ({
    words: Array.from({ length: 900 }, () => `${'word '.repeat(100)}\n\n`),
    usage: undefined,
  }));
  const block = modelBlock({
    name: 'endless/model',
    provider: 'Endless',
    url: upstream.url,
    contextLength: 2_000_000,
    maxOutputTokens: 1_000_000,
  });
  const own = await startSpine({ toml: `${UNHURRIED}[billing]\ndrain_ms = 100\n${block}` });
  try {
    const visitor = await browser.visit({ origin: own.origin });
    const { page } = visitor;
    await signIn(visitor, own.key, 'endless/model');
    await page.getByRole('textbox').fill('hello');
    await page.keyboard.press('Enter');
    await page.getByText(/The answer was stopped here/).waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: /charged/ }).waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: 'New' }).click();
    await page.getByRole('heading', { name: 'Endless: Model' }).waitFor();
    expect(visitor.problems).toEqual([]);
    await visitor.close();
    expect(await own.faults()).toEqual([]);
  } finally {
    await own.stop();
  }
});
