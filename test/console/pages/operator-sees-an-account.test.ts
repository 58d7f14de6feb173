import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// The operator opens an account, sees what it used and called, finds out why a call failed, and refunds another.

let spine: Spine;
let browser: TestBrowser;
let key: string;
let account: string;
beforeAll(async () => {
  [spine, browser] = await Promise.all([
    startSpine({ toml: `${UNHURRIED}\n[analytics]\nevery_ms = 100\n` }),
    openBrowser(),
  ]);
  ({ key, account } = await spine.tenant('acme', '5'));
  await spine.post('/chat/completions', ask('hello', { model: 'no/such' }), { authorization: `Bearer ${key}` });
  for (const text of ['hello', '!status:500'])
    await (
      await spine.post('/chat/completions', ask(text), {
        authorization: `Bearer ${key}`,
        'x-tollgate-tags': 'team=search',
      })
    ).text();
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test('what an account used and called is on its page, and a call is refunded from there', async () => {
  // The figures follow the calls.
  const counted = async () => {
    const answer = await spine.get('/analytics/own', { authorization: `Bearer ${key}` });
    const { totals } = (await answer.json()) as { readonly totals: Readonly<Record<string, number>> };
    return totals['requests']! + totals['failed']!;
  };
  await expect.poll(counted, { interval: 20, timeout: atThisLoad(20_000) }).toBe(2);
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/admin?tab=accounts');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  await page.getByRole('link', { name: 'acme' }).click();

  await page.getByRole('img', { name: 'Spending by day' }).waitFor();
  await pageHolds(visitor);
  const used = page.getByRole('table', { name: 'Usage' });
  const by = page.getByRole('group', { name: 'Spending by' });
  await by.getByRole('button', { name: 'Month' }).click();
  await used.getByRole('cell', { name: new Date().toISOString().slice(0, 7) }).waitFor();
  await by.getByRole('button', { name: 'Service' }).click();
  await used.getByRole('cell', { name: 'test/model' }).first().waitFor();
  await by.getByRole('button', { name: 'Tag' }).click();
  await used.getByRole('cell', { name: 'search' }).waitFor();
  await pageHolds(visitor);

  const refused = page.getByRole('table', { name: 'Refused requests' });
  await refused.getByText('404 POST /api/v1/chat/completions').waitFor();
  await refused.getByText('Model not found: no/such', { exact: false }).waitFor();

  const calls = page.getByRole('table', { name: 'Calls' });
  expect(await calls.getByRole('link', { name: 'test/model' }).count()).toBe(2);
  await page.getByRole('button', { name: 'Failed', exact: true }).click();
  await expect.poll(() => calls.getByRole('link', { name: 'test/model' }).count()).toBe(1);
  await calls.getByRole('link', { name: 'test/model' }).click();
  await page.getByRole('heading', { name: 'Failed attempts' }).waitFor();
  await pageHolds(visitor);
  await page.goBack();
  await page.getByRole('button', { name: 'Settled', exact: true }).click();
  // The failed call stays until the others have come.
  await calls.getByText('Failed').first().waitFor({ state: 'detached' });
  await expect.poll(() => calls.getByRole('link', { name: 'test/model' }).count()).toBe(1);
  await calls.getByRole('link', { name: 'test/model' }).click();

  await page.getByRole('button', { name: 'Refund', exact: true }).click();
  const form = page.getByRole('dialog', { name: 'Refund a call' });
  await form.getByLabel('Reason').fill('the answer was wrong');
  await pageHolds(visitor);
  await form.getByRole('button', { name: 'Refund the call' }).click();
  const confirm = page.getByRole('dialog', { name: 'Confirm with the admin key' });
  await confirm.getByText(/^Refund \$0\.\d+ of the call gen-/).waitFor();
  await confirm.getByLabel('Admin key').fill(spine.adminKey);
  await confirm.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('By the operator: the answer was wrong').waitFor();
  await page.goBack();
  const movements = page.getByRole('table', { name: 'Credits, debits and refunds' });
  await movements.getByRole('cell', { name: /^Refund of a call the answer was wrong gen-/ }).waitFor();
  await page.goForward();
  await pageHolds(visitor);
  expect(await page.getByRole('button', { name: 'Refund', exact: true }).count()).toBe(0);
  await visitor.close();

  const own = await browser.visit({ origin: spine.origin });
  await own.page.goto('/sign-in');
  await own.page.getByLabel('API key', { exact: true }).fill(key);
  await own.page.getByRole('button', { name: 'Sign in with the key' }).click();
  await own.page.getByRole('navigation', { name: 'Account' }).waitFor();
  await own.page.goto('/dashboard/balance');
  await own.page.getByText('Refund of a call').waitFor();
  await pageHolds(own);
  await own.close();
  const balance = await spine.app.ledger.balance(`escrow:${account}`);
  expect(balance).toEqual({ available: 5_000_000n, locked: 0n });
});
