import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { until } from '../../support/cluster.ts';
import { ask, MODEL, modelBlock, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { looksRight, pageHolds } from './page-holds.ts';

// What the pages say must be true: about services that nobody has tried, about a gateway that is away, about addresses
// that do not exist.

let spine: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  const dead = modelBlock({ name: 'dead/model', provider: 'Dead', url: 'http://127.0.0.1:9' });
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED + dead, mode: 'development' }), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await spine?.stop();
});

test('a service without calls is not called healthy, one that fails is down in the list and on its page', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  const row = (name: string) => page.getByRole('row').filter({ hasText: name });
  await page.goto('/marketplace');
  await row(MODEL).getByText('Idle').last().waitFor();
  await (await spine.post('/chat/completions', ask('one'))).json();
  for (let call = 0; call < 3; call++)
    await (await spine.post('/chat/completions', { ...ask('one'), model: 'dead/model' })).text();
  // The gateway makes its list at most four times a second.
  await until(async () => {
    await page.reload();
    await row(MODEL)
      .getByText(/Healthy|Idle/)
      .last()
      .waitFor();
    return (await row(MODEL).getByText('Healthy').count()) > 0;
  }, 'the list shows that the model answered');
  await row('dead/model').getByText('Down').last().waitFor();
  // What cannot be called is below what can be.
  expect(await page.getByRole('row').last().textContent()).toContain('dead/model');
  await page.goto('/models/dead/model');
  await page.getByRole('table').getByText('Down').waitFor();
  await page.goto('/providers');
  await row('Dead').getByText('Down').waitFor();
  await visitor.close();
});

test('on a phone the market shows whether a service can be called', async () => {
  const visitor = await browser.visit({ origin: spine.origin, width: 390 });
  await visitor.page.goto('/marketplace');
  await visitor.page
    .getByRole('row')
    .filter({ hasText: MODEL })
    .getByText(/Healthy|Idle/)
    .first()
    .waitFor();
  await pageHolds(visitor);
  await visitor.close();
});

test('a click anywhere in the row of a call opens the call', async () => {
  await spine.tenant('dev', '1');
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/dashboard/calls');
  await page.getByRole('navigation', { name: 'Account' }).waitFor();
  const answered = await page.evaluate(
    `fetch('/api/v1/chat/completions', {
      method: 'POST',
      headers: { 'x-tollgate-web': '1', 'content-type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(ask('one')))},
    }).then((answer) => answer.text())`,
  );
  expect(answered).toContain('usage');
  await page.reload();
  const row = page.getByRole('row').filter({ hasText: MODEL }).first();
  await row.waitFor();
  // The last cell, far from the link.
  await row.getByRole('cell').last().click({ force: true });
  await page.waitForURL(/\/dashboard\/calls\/gen-/);
  await visitor.close();
});

test('a dashboard whose gateway is away says that, and goes on when it is back', async () => {
  const visitor = await browser.visit({ origin: spine.origin, expected: /ERR_FAILED|Failed to load/ });
  const { page } = visitor;
  await page.goto('/dashboard');
  await page.getByRole('navigation', { name: 'Account' }).waitFor();
  await page.route('**/api/v1/**', (route) => route.abort());
  await page.goto('/dashboard/keys');
  await page.getByText('The gateway does not answer.').first().waitFor();
  expect(await page.getByText('Sign in to see this').count()).toBe(0);
  await page.unroute('**/api/v1/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('navigation', { name: 'Account' }).waitFor();
  await visitor.close();
});

test('a page that was not loaded yet says that the gateway is away, and comes when it is back', async () => {
  const visitor = await browser.visit({
    origin: spine.origin,
    expected: /ERR_FAILED|Failed to (?:load|fetch)|importing/i,
  });
  const { page } = visitor;
  await page.goto('/');
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.goto('/providers');
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.route('**/*', (route) => route.abort());
  await page.getByRole('link', { name: 'Rankings' }).first().click();
  await page.getByText('The gateway does not answer.').first().waitFor();
  expect(await page.getByText('newer version').count()).toBe(0);
  await page.unroute('**/*');
  await page.getByRole('heading', { level: 1, name: 'Rankings' }).waitFor();

  // A file that is not there any more, at a gateway that answers.
  await page.route('**/assets/**', (route) => route.fulfill({ status: 404 }));
  await page.getByRole('link', { name: 'Marketplace' }).first().click();
  await page.getByText('There is a newer version of this page.').waitFor();
  await visitor.close();
});

test('an address that does not exist is a page for people, and an error in JSON for programs', async () => {
  const visitor = await browser.visit({ origin: spine.origin, expected: /404/ });
  const { page } = visitor;
  const answer = await page.goto('/dashboard/nope');
  expect(answer?.status()).toBe(404);
  await page.getByRole('heading', { level: 1, name: 'There is no such page.' }).waitFor();
  await pageHolds(visitor);
  await visitor.close();

  const as = (path: string, accept: string) => fetch(spine.origin + path, { headers: { accept } });
  const html = 'text/html,application/xhtml+xml,*/*;q=0.8';
  for (const [path, accept] of [
    ['/dashboard/nope', '*/*'],
    ['/api/v1/nope', html],
    ['/health/nope', html],
  ] as const) {
    const { status, headers } = await as(path, accept);
    expect([status, headers.get('content-type')], path).toEqual([404, expect.stringContaining('application/json')]);
  }
});

test('a wrong key is told beside its field', async () => {
  const visitor = await browser.visit({ origin: spine.origin, expected: /401/ });
  const { page } = visitor;
  await page.goto('/sign-in');
  await page.getByLabel('API key').fill('svc-sk-v2-wrong');
  await page.getByRole('button', { name: 'Sign in with the key' }).click();
  const card = page.locator('section').filter({ has: page.getByLabel('API key') });
  await card.getByRole('alert').waitFor();
  expect(await page.getByRole('alert').count()).toBe(1);
  expect(await page.getByText('You are not signed in').count()).toBe(0);
  await visitor.close();
});

test('the services of a key are chosen from those of the gateway', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/dashboard/keys');
  await page.getByRole('button', { name: 'New key' }).first().click();
  await page.getByLabel('Name', { exact: true }).fill('agent');
  const field = page.getByRole('combobox', { name: 'Services and tools' });
  const offered = `[...document.querySelectorAll('datalist option')].map((each) => each.value)`;
  await expect.poll(() => page.evaluate<string[]>(offered)).toContain(MODEL);
  await field.fill(MODEL);
  await page.keyboard.press('Enter');
  await field.fill('late/model');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('button', { name: `Remove ${MODEL}` }).waitFor();
  expect(await visitor.axe()).toEqual([]);
  await page.getByRole('button', { name: 'Create the key' }).click();
  await page.getByText('Copy it now.').waitFor();
  const session = await page.evaluate<{ data: { label: string; allowed_services: string[] }[] }>(
    `fetch('/api/v1/keys', { headers: { 'x-tollgate-web': '1' } }).then((answer) => answer.json())`,
  );
  expect(session.data.find(({ label }) => label === 'agent')?.allowed_services).toEqual([MODEL, 'late/model']);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('nothing but the page itself is printed', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/dashboard/statement');
  await page.getByRole('navigation', { name: 'Account' }).waitFor();
  await page.getByRole('table').getByText(`× ${MODEL}`).first().waitFor();
  await looksRight(visitor);
  await page.emulateMedia({ media: 'print' });
  expect(await page.getByRole('combobox').count()).toBe(0);
  expect(await page.getByRole('table').isVisible()).toBe(true);
  for (const name of ['Account', 'Main']) expect(await page.getByRole('navigation', { name }).count(), name).toBe(0);
  expect(await page.getByRole('heading', { level: 1 }).isVisible()).toBe(true);
  await visitor.close();
});
