import { readFile } from 'node:fs/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFundsWorld, type FundsWorld } from './funds/funds-world.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { EVM_WALLET, injectEvmWallet } from '../../support/page-wallet.ts';
import { MODEL } from '../../support/spine.ts';

// The life of an account in a browser: a wallet signs in, pays in, makes a key, and looks at what the key's call cost.

let world: FundsWorld;
let browser: TestBrowser;
let visitor: Visitor;
beforeAll(async () => {
  const toml = '[sign_in]\ndomains = ["tollgate.test"]\n';
  [world, browser] = await Promise.all([
    openFundsWorld({ chain: 'withdrawal_min = 0.1\nwithdrawal_fee = 0.05', toml }),
    openBrowser(),
  ]);
});
afterAll(async () => {
  await browser.close();
  expect(await world.spine.faults()).toEqual([]);
  await world.stop();
});

const FAILED_DEPOSIT = {
  name: 'test/failed-deposit',
  text: "INSERT INTO deposits (id, network, account, payer, amount, state, credited, created_at, updated_at, looks) VALUES ($1, $2, $3, '', 1, 'failed', NULL, $4, $4, 0)",
};

test('from the sign-in to the receipt of a call', async () => {
  // The terms of a payment come as a 402.
  visitor = await browser.visit({ origin: world.spine.origin, wallet: true, expected: /402 \(Payment Required\)/ });
  const { page } = visitor;
  const wallet = await world.wallet();
  const signed = await injectEvmWallet(page, wallet, world.anvil.chainId);

  await page.goto('/sign-in?next=/dashboard/balance');
  await page.getByRole('button', { name: EVM_WALLET }).click();
  await page.getByRole('heading', { level: 1, name: 'Balance' }).waitFor();
  expect(signed.texts[0]).toContain('Sign in to my account. This costs nothing and moves no money.');
  await holds();

  await page.getByLabel('USDC', { exact: true }).fill('3');
  await page.getByRole('button', { name: 'Pay $3.00' }).click();
  await page.getByRole('dialog').getByRole('button', { name: EVM_WALLET }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  const deposit = page.getByRole('table', { name: 'Deposits' }).getByRole('row').nth(1);
  await deposit.getByText('$3.00').waitFor();
  expect(await deposit.getByText(/Credited|Final/).count()).toBe(1);
  await page.locator('dl').getByText('$3.00').waitFor();
  expect(signed.asked).toContain('eth_signTypedData_v4');

  // More deposits than the API lists in one page.
  for (let at = 0; at < 55; at += 1)
    await world.spine.app.database.query(FAILED_DEPOSIT, [`failed-${at}`, world.network, wallet.account, at]);
  await page.reload();
  const deposits = page.getByRole('table', { name: 'Deposits' }).getByRole('row');
  await page.getByRole('button', { name: 'Older deposits' }).click();
  await expect.poll(() => deposits.count()).toBe(1 + 1 + 55);
  expect(await page.getByRole('button', { name: 'Older deposits' }).count()).toBe(0);

  await page.getByRole('link', { name: 'Keys', exact: true }).click();
  await page.getByRole('button', { name: 'New key' }).first().click();
  await page.getByLabel('Name').fill('my agent');
  await page.getByLabel('Spending limit in USD').fill('1');
  await page.getByRole('button', { name: 'Create the key' }).click();
  const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await proof.getByText('Create the API key "my agent".').waitFor();
  expect(await visitor.axe()).toEqual([]);
  await proof.getByRole('button', { name: EVM_WALLET }).click();
  const made = page.getByRole('region', { name: 'The key', exact: true });
  await made.waitFor();
  const key = await made.innerText();
  expect(signed.texts.at(-1)).toContain('Create the API key "my agent".');
  expect(key).toMatch(/^svc-sk-v2-/);
  expect(await visitor.axe()).toEqual([]);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  await page.getByRole('table', { name: 'Keys' }).getByText('my agent').waitFor();
  await holds();

  const openai = new OpenAI({ baseURL: world.spine.url, apiKey: key, maxRetries: 0 });
  await openai.chat.completions.create({
    model: MODEL,
    messages: [{ role: 'user', content: 'hello' }],
    max_tokens: 50,
  });
  await world.spine.quiet();

  await page.getByRole('link', { name: 'Calls', exact: true }).click();
  const row = page.getByRole('table', { name: 'Calls' }).getByRole('row').nth(1);
  await row.getByText(MODEL).waitFor();
  expect(await row.innerText()).toMatch(/\$0\.0000\d+/);
  await holds();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ]);
  const csv = await readFile(await download.path(), 'utf8');
  expect(csv.split('\r\n')[1]).toContain(MODEL);

  await row.getByRole('link').click();
  await page.getByText('Genuine.').waitFor();
  for (const line of ['Locked', 'Charged', 'Released']) expect(await page.getByText(line).count()).toBeGreaterThan(0);
  await holds();
  await page.getByText('Show or change the text').click();
  const receipt = page.getByLabel('Receipt as text');
  const text = await receipt.inputValue();
  const [head, body, signature] = text.split('.');
  const dearer = Buffer.from(body!, 'base64url')
    .toString()
    .replace(/"charged":"\d+"/, '"charged":"1"');
  await receipt.fill(`${head}.${Buffer.from(dearer).toString('base64url')}.${signature}`);
  await page.getByText('Not genuine.').waitFor();
  await receipt.fill(text);
  await page.getByText('Your browser checked the signature').waitFor();
  expect(visitor.problems).toEqual([]);
});

test('money goes out only with a new signature', async () => {
  const { page } = visitor;
  await page.goto('/dashboard/balance');
  await page.getByRole('button', { name: 'Withdraw' }).click();
  const form = page.getByRole('dialog', { name: 'Withdraw' });
  await form.getByLabel('USDC').fill('1');
  await form.getByText('$0.05 of it is the fee of a withdrawal: the wallet gets $0.95.').waitFor();
  await form.getByRole('button', { name: 'Withdraw' }).click();
  const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await proof.getByText(/^Withdraw \$1\.00 to .*, which gets \$0\.95 after the fee\.$/).waitFor();
  // Who refuses has withdrawn nothing.
  await proof.getByRole('button', { name: 'Close' }).click();
  await proof.waitFor({ state: 'hidden' });
  expect(await page.getByRole('table', { name: 'Withdrawals' }).count()).toBe(0);

  await form.getByRole('button', { name: 'Withdraw' }).click();
  await proof.getByRole('button', { name: EVM_WALLET }).click();
  await form.waitFor({ state: 'hidden' });
  const row = page.getByRole('table', { name: 'Withdrawals' }).getByRole('row').nth(1);
  await row.getByText('$1.00').waitFor();
  await row.getByText('$0.95 after the fee').waitFor();
  await expect.poll(() => row.innerText(), { timeout: 60_000, interval: 250 }).toContain('Paid');
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

async function holds(): Promise<void> {
  await visitor.settled();
  expect(await visitor.page.locator('h1').count()).toBe(1);
  expect(await visitor.axe()).toEqual([]);
  expect(await visitor.overflow()).toBe(0);
}
