import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { openBrowser, type TestBrowser } from '../../support/browser.ts';
import { DEVNET } from '../../support/chain/solana-accounts.ts';
import { startSolanaTwin, type SolanaTwin } from '../../support/chain/solana-twin.ts';
import { closeAccount, newPayer, payerOf, plainTransfer, send, type Payer } from '../../support/chain/solana-wallet.ts';
import { injectSolanaWallet, SOLANA_WALLET } from '../../support/page-wallet.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { solanaWallet } from '../../support/wallets.ts';

// A wallet of the Wallet Standard pays in from the page. It signs for real, and the twin runs the token program.

let twin: SolanaTwin;
let treasury: Payer;
let spine: Spine;
let browser: TestBrowser;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-treasury-'));
  [twin, browser, treasury] = await Promise.all([
    startSolanaTwin({ finalizeAfter: 2, slotMs: 10 }),
    openBrowser(),
    newPayer(),
  ]);
  twin.fundSol(treasury.address);
  const file = join(directory, 'treasury.json');
  await writeFile(file, JSON.stringify([...treasury.secret]));
  await chmod(file, 0o600);
  const chain = `[[chains]]\nnetwork = "${DEVNET}"\nrpc_url = "std::env::RPC_URL"\nkeypair_file = ${JSON.stringify(file)}\nmin_topup = 0.5\nopens_accounts = true\ntoken_account_fee = 0.25\n`;
  const toml = `${UNHURRIED}[payments]\nwatch_ms = 100\n${chain}`;
  spine = await startSpine({ credit: '0', env: { RPC_URL: twin.url }, toml });
  // The first start makes the treasury's token account, and its books begin when that is final.
  while (!(await chains())[0]!.answers) await new Promise((resolve) => setTimeout(resolve, 25));
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await twin.close();
  await rm(directory, { recursive: true });
});

const chains = async () =>
  ((await (await fetch(`${spine.url}/payments/chains`)).json()) as { data: readonly { answers: boolean }[] }).data;

const prepare = async (body: object) => {
  const answer = await fetch(`${spine.url}/topup/transaction`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as { readonly error?: { readonly param?: string } } };
};

test('the wallet signs one transaction, and the money is there', async () => {
  const wallet = solanaWallet();
  twin.fundUsdc(wallet.address, 10_000_000n);
  twin.finalize();
  const visitor = await browser.visit({ origin: spine.origin, wallet: true });
  const { page } = visitor;
  const { asked } = await injectSolanaWallet(page, wallet);
  await page.goto('/sign-in?next=/dashboard/balance');
  await page.getByRole('button', { name: SOLANA_WALLET }).click();
  await page.getByRole('heading', { level: 1, name: 'Balance' }).waitFor();
  await page.getByLabel('USDC', { exact: true }).fill('3');
  await page.getByRole('button', { name: 'Pay $3.00' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: SOLANA_WALLET }).click();
  await dialog.waitFor({ state: 'hidden' });
  const deposit = page.getByRole('table', { name: 'Deposits' }).getByRole('row').nth(1);
  await deposit.getByText('$3.00').waitFor();
  await page.locator('dl').getByText('$3.00').waitFor();
  expect(asked).toEqual(['signMessage', 'signTransaction']);
  expect(await visitor.axe()).toEqual([]);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a wallet without a token account is told what one costs, and paid so much less', async () => {
  const wallet = solanaWallet();
  twin.fundUsdc(wallet.address, 3_000_000n);
  twin.finalize();
  const visitor = await browser.visit({ origin: spine.origin, wallet: true });
  const { page } = visitor;
  await injectSolanaWallet(page, wallet);
  await page.goto('/sign-in?next=/dashboard/balance');
  await page.getByRole('button', { name: SOLANA_WALLET }).click();
  await page.getByLabel('USDC', { exact: true }).fill('3');
  await page.getByRole('button', { name: 'Pay $3.00' }).click();
  await page.getByRole('dialog').getByRole('button', { name: SOLANA_WALLET }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await closeAccount(twin, await payerOf(wallet));

  await page.getByRole('button', { name: 'Withdraw' }).click();
  const form = page.getByRole('dialog', { name: 'Withdraw' });
  await form.getByLabel('USDC').fill('1');
  await form.getByText('A wallet that has no account for USDC yet gets $0.25 less: one is opened for it.').waitFor();
  expect(await visitor.axe()).toEqual([]);
  await form.getByRole('button', { name: 'Withdraw' }).click();
  const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await proof.getByText(/^Withdraw \$1\.00 to .*, less \$0\.25 if it has no account for USDC yet\.$/).waitFor();
  await proof.getByRole('button', { name: SOLANA_WALLET }).click();
  await form.waitFor({ state: 'hidden' });
  await expect.poll(() => twin.chain.tokens(wallet.address), { timeout: 60_000 }).toBe(750_000n);
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('who acts for an organisation pays into its balance, and not into its own', async () => {
  const wallet = solanaWallet();
  twin.fundUsdc(wallet.address, 10_000_000n);
  twin.finalize();
  const visitor = await browser.visit({ origin: spine.origin, wallet: true });
  const { page } = visitor;
  await injectSolanaWallet(page, wallet);
  await page.goto('/sign-in?next=/dashboard/organisation');
  await page.getByRole('button', { name: SOLANA_WALLET }).click();
  await page.getByRole('button', { name: 'New organisation' }).click();
  await page.getByLabel('Name of the organisation').fill('Acme Ltd');
  await page.getByRole('button', { name: 'Create it' }).click();
  const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await proof.getByRole('button', { name: SOLANA_WALLET }).click();
  await page.getByRole('button', { name: 'Act for Acme Ltd' }).click();
  await page.getByText('You act for').waitFor();
  await page.goto('/dashboard/balance');
  await page.getByText('You act for').waitFor();
  await page.getByLabel('USDC', { exact: true }).fill('2');
  await page.getByRole('button', { name: 'Pay $2.00' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('The money goes to the organisation.').waitFor();
  await dialog.getByRole('button', { name: SOLANA_WALLET }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('table', { name: 'Deposits' }).getByRole('row').nth(1).getByText('$2.00').waitFor();
  await page.locator('dl').getByText('$2.00').waitFor();
  expect(await spine.app.ledger.balance(escrowOf(wallet.account))).toBeNull();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('You act for').waitFor({ state: 'detached' });
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the operator finds money of a stranger by its transaction, and credits it', async () => {
  const stranger = await newPayer();
  twin.fundSol(stranger.address);
  twin.fundUsdc(stranger.address, 5_000_000n);
  twin.finalize();
  const hash = await send(twin, stranger, [plainTransfer(stranger.address, treasury.address, 2_000_000n)]);
  const suspense = async () =>
    (
      (await (
        await fetch(`${spine.origin}/admin/v1/deposits`, { headers: { authorization: `Bearer ${spine.adminKey}` } })
      ).json()) as { data: readonly { transaction: string }[] }
    ).data;
  await expect.poll(suspense, { timeout: 60_000 }).toEqual([expect.objectContaining({ transaction: hash })]);
  const visitor = await browser.visit({ origin: spine.origin, wallet: true });
  const { page } = visitor;
  await page.goto('/admin?tab=chains');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  await page.getByLabel('Hash, sender or id').fill(hash.toUpperCase());
  const row = page.getByRole('table', { name: 'Deposits in suspense' }).getByRole('row').nth(1);
  await row.getByText('$2.00').waitFor();
  expect(await visitor.axe()).toEqual([]);
  await row.getByRole('button', { name: /^Credit/ }).click();
  await page.getByLabel('Account', { exact: true }).fill('tollgate:operator');
  await page.getByRole('button', { name: 'Credit', exact: true }).click();
  const confirm = page.getByRole('dialog', { name: 'Confirm with the admin key' });
  await confirm.getByText('Credit the deposit to tollgate:operator, for good.').waitFor();
  await confirm.getByLabel('Admin key').fill(spine.adminKey);
  await confirm.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('Nothing is in suspense').waitFor();
  expect(await suspense()).toEqual([]);
  await page.getByRole('button', { name: 'Withdraw fees' }).click();
  const form = page.getByRole('dialog', { name: 'Withdraw fees' });
  await form.getByLabel('Address').fill(stranger.address);
  await form.getByLabel('USDC').fill('1');
  expect(await visitor.axe()).toEqual([]);
  await form.getByRole('button', { name: 'Withdraw' }).click();
  await confirm.getByLabel('Admin key').fill(spine.adminKey);
  await confirm.getByRole('button', { name: 'Confirm' }).click();
  // There are no fees yet: the API says so, and the form stays.
  await form.getByRole('alert').waitFor();
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 800 });
    expect(await visitor.overflow(), `at ${width} px`).toBe(0);
  }
  await visitor.close();
});

test.each([
  [{ network: DEVNET, payer: 'no-address', amount_usd: 1 }, 'payer'],
  [{ network: DEVNET, payer: '11111111111111111111111111111111', amount_usd: 0.1 }, 'amount_usd'],
  [{ network: 'solana:elsewhere', payer: '11111111111111111111111111111111', amount_usd: 1 }, 'network'],
])('%j is refused by its %s', async (body, param) => {
  expect(await prepare(body)).toMatchObject({ status: 400, body: { error: { param } } });
});
