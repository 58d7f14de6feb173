import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { dialIn, offeredModel, type DialledIn } from '../../support/dial-in.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { formatUsd } from '../../../web/src/ui/usd.ts';
import { pageHolds } from './page-holds.ts';

// The pages on which the operator books a payout and bans a provider, and on which a provider sees how it is paid.

let spine: Spine;
let browser: TestBrowser;
let seller: DialledIn;
let key: string;
let sold: string;
beforeAll(async () => {
  [spine, browser] = await Promise.all([
    startSpine({ toml: `${UNHURRIED}\n[payments]\npayouts = "by bank transfer each month"\n` }),
    openBrowser(),
  ]);
  ({ key } = await spine.tenant('seller', '0'));
  seller = await dialIn({
    router: spine.origin,
    apiKey: key,
    services: offeredModel({ url: spine.provider.url, provider: 'Seller' }),
  });
  const call = await spine.post('/chat/completions', ask('hello', { model: 'tunnel/model' }));
  await call.text();
  expect(call.status).toBe(200);
  sold = call.headers.get('x-generation-id')!;
  const failed = await spine.post('/chat/completions', ask('hello !status:401', { model: 'tunnel/model' }));
  await failed.text();
  await spine.quiet();
});
afterAll(async () => {
  seller.kill();
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test('the operator books a payout and bans the provider, who sees both', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/admin?tab=providers');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  const confirm = async () => {
    const dialog = page.getByRole('dialog', { name: 'Confirm with the admin key' });
    await dialog.getByLabel('Admin key').fill(spine.adminKey);
    await dialog.getByRole('button', { name: 'Confirm' }).click();
  };

  await page.getByRole('button', { name: 'Book a payout to Seller' }).click();
  await page.getByLabel('Reference').fill('SEPA-117');
  await page.getByRole('button', { name: 'Book the payout' }).click();
  await confirm();
  await page.getByText('Booked.').waitFor();
  await page.getByRole('button', { name: 'Ban Seller' }).click();
  await page.getByLabel('Reason').fill('sells another model');
  await page.getByRole('button', { name: 'Ban the provider' }).click();
  await confirm();
  await page.getByText('Banned: sells another model').waitFor();
  expect(await seller.closed).toBe(2);
  await page.getByRole('button', { name: 'Unban Seller' }).waitFor();
  await pageHolds(visitor);
  await visitor.close();

  const own = await browser.visit({ origin: spine.origin });
  await own.page.goto('/sign-in');
  await own.page.getByLabel('API key', { exact: true }).fill(key);
  await own.page.getByRole('button', { name: 'Sign in with the key' }).click();
  await own.page.getByRole('navigation', { name: 'Account' }).waitFor();
  await own.page.goto('/dashboard/provider');
  await own.page.getByText('SEPA-117').waitFor();
  await own.page.getByText('The operator says about payouts: by bank transfer each month').first().waitFor();
  await pageHolds(own);

  // Its calls, what each earned, and why one failed.
  const listed = own.page.getByRole('row').filter({ hasText: sold });
  const { cost_micro_usdc: charged, fee_micro_usdc: fee } = await spine.generation(sold);
  expect(await listed.getByRole('cell').last().textContent()).toBe(formatUsd((charged - fee) / 1e6));
  await own.page.getByText('it answered with status 401').first().waitFor();
  await own.page.goto('/dashboard/balance');
  await own.page.getByRole('heading', { name: 'Earned as a provider' }).waitFor();
  await pageHolds(own);
  await own.close();
});
