import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, formatUsd, treasuryOf } from '#billing';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// The dialog in which the operator debits, renames, freezes and closes an account, and the list of movements in which
// the customer sees what was taken.

let spine: Spine;
let browser: TestBrowser;
let account: string;
let key: string;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED }), openBrowser()]);
  ({ account, key } = await spine.tenant('acme', '12.345678'));
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

/** The state and the label of the account, and what it has in micro-USD. */
async function accountNow(): Promise<Record<string, unknown>> {
  const answer = await fetch(`${spine.origin}/admin/v1/accounts/${account}`, {
    headers: { authorization: `Bearer ${spine.adminKey}` },
  });
  return ((await answer.json()) as { data: Record<string, unknown> }).data;
}

const statusOfCall = async () => {
  const call = await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` });
  await call.text();
  return call.status;
};

/** Opens the dialog of the account, and returns it with what the steps of the test do in it. */
async function changing({ page }: Visitor, name: string) {
  await page.getByRole('button', { name: `Change ${name}`, exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Change an account' });
  return {
    dialog,
    choose: (act: string) => dialog.getByRole('button', { name: act, exact: true }).click(),
    fill: (label: string, text: string) => dialog.getByLabel(label, { exact: true }).fill(text),
    /** Sends the form, and confirms it with the admin key. `act` is what the confirmation names. */
    async send(button: string, act: string) {
      await dialog.getByRole('button', { name: button, exact: true }).click();
      const confirm = page.getByRole('dialog', { name: 'Confirm with the admin key' });
      await confirm.getByText(act, { exact: true }).waitFor();
      await confirm.getByLabel('Admin key').fill(spine.adminKey);
      await confirm.getByRole('button', { name: 'Confirm' }).click();
      await confirm.waitFor({ state: 'hidden' });
    },
  };
}

test('the operator debits, renames, freezes, closes and reopens an account', async () => {
  const visitor = await browser.visit({ origin: spine.origin, expected: /status of 422/ });
  const { page } = visitor;
  await page.goto('/admin?tab=accounts');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();

  const debit = await changing(visitor, account);
  await debit.dialog.getByText('At most $12.345678 can be taken.').waitFor();
  await debit.fill('USD', '13');
  await debit.fill('Reason', '12.345678 were credited instead of 10');
  await debit.fill('Reference', 'correction-17');
  await debit.send('Debit the account', `Debit 13 USD from ${account}.`);
  await debit.dialog.getByRole('alert').getByText('At most 12.345678 USD can be taken from this account').waitFor();
  await pageHolds(visitor);
  await debit.fill('USD', '2.345678');
  await debit.send('Debit the account', `Debit 2.345678 USD from ${account}.`);
  await debit.dialog.getByText('$2.345678 were taken.').waitFor();
  expect(await debit.dialog.locator('dd').allTextContents()).toEqual(['$12.345678', '$10.00']);
  await pageHolds(visitor);
  await debit.choose('Done');

  const rename = await changing(visitor, account);
  await rename.choose('Rename');
  await rename.fill('Label', 'Acme Ltd');
  await rename.send('Rename the account', `Rename ${account} to Acme Ltd.`);
  const row = page.getByRole('row').filter({ hasText: account });
  await row.getByText('Acme Ltd', { exact: true }).waitFor();

  const close = await changing(visitor, 'Acme Ltd');
  await close.choose('Close account');
  await close.dialog.getByText('Freeze the account before you close it').waitFor();
  await close.choose('Freeze');
  await close.fill('Reason', 'a stolen key');
  await close.send('Freeze the account', 'Freeze Acme Ltd.');
  await row.getByText('frozen', { exact: true }).waitFor();
  await row.getByText('a stolen key', { exact: true }).waitFor();
  expect(await statusOfCall()).toBe(403);

  const unfreeze = await changing(visitor, 'Acme Ltd');
  await unfreeze.choose('Unfreeze');
  await pageHolds(visitor);
  await unfreeze.fill('Reason', 'the key was replaced');
  await unfreeze.send('Unfreeze the account', 'Unfreeze Acme Ltd.');
  await row.getByText('frozen', { exact: true }).waitFor({ state: 'hidden' });
  expect(await statusOfCall()).toBe(200);
  await spine.quiet();

  const end = await changing(visitor, 'Acme Ltd');
  await end.choose('Freeze');
  await end.fill('Reason', 'the contract ended');
  await end.send('Freeze the account', 'Freeze Acme Ltd.');
  const last = await changing(visitor, 'Acme Ltd');
  await last.choose('Close account');
  const rest = formatUsd((await spine.app.ledger.balance(escrowOf(account)))!.available);
  await last.dialog.getByText(`The account still has $${rest}.`).waitFor();
  await last.fill('Reference', 'wire-91');
  await last.fill('Reason', 'the contract ended');
  await pageHolds(visitor);
  await last.send('Close the account', `Close Acme Ltd, with $${rest} paid out.`);
  await row.getByText('closed', { exact: true }).waitFor();
  await pageHolds(visitor);
  expect(await accountNow()).toMatchObject({ state: 'closed', balance_micro_usdc: 0, label: 'Acme Ltd' });
  expect(await statusOfCall()).toBe(401);

  const reopen = await changing(visitor, 'Acme Ltd');
  await reopen.choose('Reopen');
  await reopen.fill('Reason', 'a new contract');
  await reopen.send('Reopen the account', 'Reopen Acme Ltd.');
  await row.getByText('closed', { exact: true }).waitFor({ state: 'hidden' });
  expect(await accountNow()).toMatchObject({ state: 'open', state_reason: 'a new contract' });
  await visitor.close();
});

test('money that came after the page was opened is not written off unseen', async () => {
  const { account: hooli } = await spine.tenant('hooli', '3.5');
  const headers = { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' };
  const change = (path: string, body: object) =>
    fetch(`${spine.origin}/admin/v1/accounts/${hooli}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  expect((await change('/freeze', { reason: 'no answer' })).status).toBe(200);
  const visitor = await browser.visit({ origin: spine.origin, expected: /status of 422/ });
  const { page } = visitor;
  await page.goto('/admin?tab=accounts');
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  const close = await changing(visitor, hooli);
  await close.choose('Close account');
  await close.dialog.getByText('The account still has $3.50.').waitFor();
  expect((await change('/credit', { amount_usd: '1', reference: 'late' })).status).toBe(200);
  await close.dialog.getByLabel('What becomes of it').selectOption('written_off');
  await close.fill('Reference', 'write-off-3');
  await close.fill('Reason', 'nobody answered');
  await close.send('Close the account', `Close ${hooli}, with $3.50 written off.`);
  await close.dialog.getByRole('alert').getByText('The account has 4.5 USD').waitFor();
  await close.dialog.getByText('The account still has $4.50.').waitFor();
  await close.send('Close the account', `Close ${hooli}, with $4.50 written off.`);
  await page.getByRole('row').filter({ hasText: hooli }).getByText('closed', { exact: true }).waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the balance page lists the movements, with older ones behind a button', async () => {
  const { account: globex, key: own } = await spine.tenant('globex', '0');
  const move = (id: string, from: ReturnType<typeof escrowOf>, to: typeof from, amount: bigint, memo: string) =>
    spine.app.ledger.transfer({ id, from, to, amount, memo });
  const treasury = treasuryOf('operator');
  for (let n = 1; n <= 50; n++) {
    await move(`credit:invoice-${n}`, treasury, escrowOf(globex), 1_000_000n, 'operator credit');
  }
  await move('debit:correction-50', escrowOf(globex), treasury, 450_000n, 'one invoice was credited twice');
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/sign-in?next=/dashboard/balance');
  await page.getByLabel('API key', { exact: true }).fill(own);
  await page.getByRole('button', { name: 'Sign in with the key' }).click();
  const rows = page.getByRole('table', { name: 'Movements besides calls' }).locator('tbody tr');
  const first = rows.first();
  await first.getByText('Debited by the operator').waitFor();
  await first.getByText('one invoice was credited twice').waitFor();
  await first.getByText('reference correction-50').waitFor();
  await first.getByText('−$0.45').waitFor();
  expect(await rows.count()).toBe(50);
  await page.getByRole('button', { name: 'Older movements' }).click();
  await rows.nth(50).waitFor();
  expect(await rows.nth(50).textContent()).toMatch(/^Credited by the operator.*reference invoice-1\+\$1\.00$/);
  await page.getByRole('button', { name: 'Older movements' }).waitFor({ state: 'hidden' });
  await pageHolds(visitor);
  await visitor.close();
});
