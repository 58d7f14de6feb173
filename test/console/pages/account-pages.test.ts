import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { injectSolanaWallet, SOLANA_WALLET } from '../../support/page-wallet.ts';
import { begin, chatLine, clientAt, ended } from '../../openai/batches/support/batch-client.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { solanaWallet } from '../../support/wallets.ts';
import { pageHolds } from './page-holds.ts';

let spine: Spine;
let production: Spine;
let browser: TestBrowser;
beforeAll(async () => {
  const analytics = '[analytics]\nevery_ms = 100\n';
  [spine, production, browser] = await Promise.all([
    startSpine({ toml: UNHURRIED + analytics, mode: 'development' }),
    startSpine({ toml: UNHURRIED }),
    openBrowser(),
  ]);
  for (const content of ['one', 'two']) await (await spine.post('/chat/completions', ask(content))).json();
});
afterAll(async () => {
  await browser.close();
  await spine.stop();
  await production.stop();
});

const PAGES = ['', '/calls', '/activity', '/keys', '/balance', '/provider', '/organisation', '/sessions'].map(
  (page) => `/dashboard${page}`,
);

describe('the account’s', () => {
  let visitor: Visitor;
  beforeAll(async () => {
    visitor = await browser.visit({ origin: spine.origin });
  });
  afterAll(() => visitor.close());

  test.each(PAGES)('%s', async (path) => {
    // The local developer is signed in by itself.
    await visitor.page.goto(path);
    await visitor.page.getByRole('navigation', { name: 'Account' }).waitFor();
    await pageHolds(visitor);
  });
});

/** A visitor of the production gateway who signed in with a key, at a page of the account. */
async function signedIn(key: string, path: string, width = 1280): Promise<Visitor> {
  const visitor = await browser.visit({ origin: production.origin, width });
  await visitor.page.goto(`/sign-in?next=${encodeURIComponent(path)}`);
  await visitor.page.getByLabel('API key', { exact: true }).fill(key);
  await visitor.page.getByRole('button', { name: 'Sign in with the key' }).click();
  return visitor;
}

test('the balance is exact, so that it adds up with what was spent, and play money has its name', async () => {
  const { account, key } = await production.tenant('player', '0');
  await production.app.ledger.transfer({
    id: 'development-play-money',
    from: treasuryOf('dev'),
    to: escrowOf(account),
    amount: 9_959_304n,
    memo: 'play money of the development account',
  });
  const visitor = await signedIn(key, '/dashboard/balance', 390);
  const { page } = visitor;
  await page.getByText('$9.959304', { exact: true }).waitFor();
  await page.getByText('Play money of this development gateway').waitFor();
  await pageHolds(visitor);
  await page.goto('/dashboard');
  await page.getByText('$9.959304', { exact: true }).waitFor();
  await pageHolds(visitor);
  await visitor.close();
});

test('a batch is a row of its own, with a neutral word and no cost beside those of its lines', async () => {
  const { key } = await production.tenant('batcher', '1');
  const client = clientAt(`${production.origin}/v1`, key);
  const { id } = await begin(client, [chatLine('a', 'ping'), chatLine('b', 'ping')]);
  await ended(client, id);
  const visitor = await signedIn(key, '/dashboard/calls?outcome=completed');
  const { page } = visitor;
  const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
  await rows.getByText('Batch,').waitFor();
  expect(await rows.count()).toBe(1);
  expect(await rows.getByText('Completed', { exact: true }).last().getAttribute('class')).toContain('bg-sunk');
  expect(await rows.locator('td').last().textContent()).toBe('–');
  await page.goto('/dashboard/calls');
  await rows.nth(2).waitFor();
  expect(await rows.getByText('Complete', { exact: true }).count()).toBeGreaterThan(1);
  await pageHolds(visitor);
  await visitor.close();
});

test('an organisation: made, acted for, with a member and a budget', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/dashboard/organisation');
  await page.getByRole('button', { name: 'New organisation' }).click();
  await page.getByLabel('Name of the organisation').fill('Acme Ltd');
  await page.getByRole('button', { name: 'Create it' }).click();
  await page.getByRole('button', { name: 'Act for Acme Ltd' }).click();
  await page.getByText('You act for').waitFor();
  await page.getByRole('button', { name: 'Add a member' }).click();
  await page.getByRole('textbox', { name: 'Account' }).fill('tollgate:local:bob');
  await page.getByLabel('Name', { exact: true }).fill('Bob');
  await page.getByRole('button', { name: 'Add the member' }).click();
  await page.getByRole('button', { name: 'Change Bob' }).click();
  await page.getByLabel('Each day').fill('5');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('meter', { name: 'Bob, each day' }).waitFor();
  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByLabel('Each month').fill('100');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('meter', { name: 'The account, each month' }).waitFor();
  await pageHolds(visitor);
  // The other pages are of the organisation, too, until it is stopped.
  await page.goto('/dashboard/keys');
  await page.getByText('You act for').waitFor();
  await page.getByText('No key yet').waitFor();
  await page.goto('/dashboard/calls');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ]);
  expect((await readFile(await download.path(), 'utf8')).trim().split('\r\n')).toHaveLength(1);
  // The playground calls with the organisation's money, or with that of the account that is signed in.
  await spine.tenant('dev', '1');
  await page.goto(`/playground?m=${encodeURIComponent(ask('').model)}`);
  await page.getByRole('link', { name: /^Balance ?\$0/ }).waitFor();
  await page.getByRole('group', { name: 'Who pays' }).getByRole('button', { name: 'My own account' }).click();
  await page.getByRole('link', { name: /^Balance ?\$[1-9]/ }).waitFor();
  await page.getByRole('textbox').fill('hello');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /charged/ }).click();
  await page.getByText(/^gen-/).waitFor();
  expect(await page.getByRole('link', { name: /^gen-/ }).count()).toBe(0);
  await page.goto('/dashboard/keys');
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('You act for').waitFor({ state: 'detached' });
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('the front page leads who is signed in to the dashboard', async () => {
  const { page, close } = await browser.visit({ origin: spine.origin });
  const shown = () => page.getByRole('link', { name: /^(Sign in|Dashboard)$/ }).allTextContents();
  await page.goto('/');
  expect(await shown()).toEqual(['Sign in']);
  await page.goto('/dashboard');
  await page.getByRole('navigation', { name: 'Account' }).waitFor();
  await page.goto('/');
  expect(await shown()).toEqual(['Dashboard']);
  await close();
});

test('prices that came with the document are not shown any more when they are old', async () => {
  const { page, close } = await browser.visit({ origin: spine.origin });
  const { model } = ask('');
  await page.clock.install();
  await page.goto(`/models/${model}`);
  const price = page.getByText(/\$\d/).first();
  await price.waitFor();
  await page.getByRole('link', { name: 'Rankings' }).first().click();
  await page.getByRole('heading', { level: 1, name: 'Rankings' }).waitFor();
  await page.clock.fastForward('02:00:00');
  await page.route('**/api/v1/services/model/**', () => {});
  await page.goBack();
  await page.locator('.shimmer').first().waitFor();
  expect(await price.count()).toBe(0);
  await close();
});

describe('the operator’s', () => {
  let visitor: Visitor;
  beforeAll(async () => {
    // A gateway without chains says so with a 404.
    visitor = await browser.visit({ origin: spine.origin, expected: /404/ });
    const { page } = visitor;
    await page.goto('/admin?tab=accounts');
    await page.getByLabel('Admin key').fill(spine.adminKey);
    await page.getByRole('button', { name: 'Sign in as the operator' }).click();
    await page.getByRole('tab', { name: 'Accounts' }).waitFor();
  });
  afterAll(() => visitor.close());

  test.each(['home', 'accounts', 'services', 'providers', 'chains', 'audit', 'gateways', 'changes'])(
    '%s',
    async (tab) => {
      await visitor.page.goto(`/admin?tab=${tab}`);
      await visitor.page.getByRole('tab', { name: 'Accounts' }).waitFor();
      await pageHolds(visitor);
    },
  );
});

test('a Solana wallet signs in, and out again', async () => {
  const visitor = await browser.visit({ origin: production.origin, wallet: true });
  const { page } = visitor;
  const wallet = solanaWallet();
  const signed = await injectSolanaWallet(page, wallet);
  await page.goto('/dashboard/keys');
  await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: SOLANA_WALLET }).click();
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
  expect(signed.texts[0]).toContain('wants you to sign in with your Solana account:');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  await page.goto('/dashboard');
  await page.getByText('Sign in to see this').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('with the keyboard alone: sign in with a key, make another, which needs the first one again', async () => {
  const { key } = await production.tenant('typist', '1');
  const visitor = await browser.visit({ origin: production.origin, expected: /status of 401/ });
  const { page } = visitor;
  const { keyboard } = page;
  /** Goes on with Tab until the control of this name has the focus. */
  const tabTo = async (name: string) => {
    const focused = () =>
      page.evaluate<string>(
        `(() => { const at = document.activeElement; return at?.labels?.[0]?.textContent ?? at?.getAttribute('aria-label') ?? at?.textContent ?? ''; })()`,
      );
    for (let step = 0; step < 80; step += 1) {
      if ((await focused()).trim() === name) return;
      await keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to ${name}`);
  };
  await page.goto('/sign-in?next=/dashboard/keys');
  await page.getByLabel('API key', { exact: true }).waitFor();
  await tabTo('API key');
  await keyboard.type(key);
  await keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
  await tabTo('New key');
  await keyboard.press('Enter');
  // The form has the focus in its first field.
  await expect.poll(() => page.evaluate('document.activeElement.labels?.[0]?.textContent')).toBe('Name');
  await keyboard.type('second');
  await keyboard.press('Enter');
  await page.getByText('Enter the API key that you signed in with.').waitFor();
  await tabTo('API key');
  await keyboard.type('svc-sk-v2-of-somebody-else');
  await keyboard.press('Enter');
  await page.getByText('This is not the key that you signed in with.').waitFor();
  await keyboard.press('ControlOrMeta+a');
  await keyboard.type(key);
  await keyboard.press('Enter');
  await page.getByRole('region', { name: 'The key', exact: true }).waitFor();
  await tabTo('I have copied it');
  await keyboard.press('Enter');
  await page.getByRole('table', { name: 'Keys' }).getByText('second', { exact: true }).waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('an operator credits an account with the admin key, asked for again', async () => {
  const visitor = await browser.visit({ origin: production.origin, expected: /401/ });
  const { page } = visitor;
  await page.goto('/sign-in');
  await page.getByText('I operate this gateway').click();
  await page.getByLabel('Admin key').fill('svc-admin-wrong');
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  await page.getByText('Invalid admin key').waitFor();
  await page.getByLabel('Admin key').fill(production.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  await page.getByRole('tab', { name: 'Accounts' }).click();
  await page.getByRole('button', { name: 'New account' }).click();
  const confirm = async () => {
    const dialog = page.getByRole('dialog', { name: 'Confirm with the admin key' });
    await dialog.getByLabel('Admin key').fill(production.adminKey);
    await dialog.getByRole('button', { name: 'Confirm' }).click();
  };
  await page.getByLabel('Name or wallet').fill('acme');
  await page.getByRole('button', { name: 'Create the account' }).click();
  await confirm();
  await page
    .getByRole('button', { name: 'Credit tollgate:local:acme' })
    .or(page.getByRole('button', { name: 'Credit acme' }))
    .click();
  await page.getByLabel('USD', { exact: true }).fill('12.50');
  await page.getByRole('dialog').getByRole('button', { name: 'Credit', exact: true }).click();
  await confirm();
  await page.getByRole('row').filter({ hasText: 'acme' }).getByText('$12.50').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('what somebody who is limited may not do is not offered', async () => {
  const { key } = await production.tenant('limited', '1', { limit: 1_000n });
  const visitor = await browser.visit({ origin: production.origin });
  const { page } = visitor;
  await page.goto('/sign-in?next=/dashboard/keys');
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.getByRole('button', { name: 'Sign in with the key' }).click();
  await page.getByRole('table', { name: 'Keys' }).waitFor();
  expect(await page.getByRole('button', { name: 'New key' }).count()).toBe(0);
  await page.getByRole('link', { name: 'Provider', exact: true }).click();
  await page.getByText('A limited key does not see this').waitFor();
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});

test('a key is rotated on its page, also the one that the browser signed in with', async () => {
  const { key } = await production.tenant('rotator', '1');
  const visitor = await browser.visit({ origin: production.origin });
  const { page } = visitor;
  const hash = createHash('sha256').update(key).digest('hex');
  const statusOf = async (text: string) =>
    (await fetch(`${production.url}/key`, { headers: { authorization: `Bearer ${text}` } })).status;
  await page.goto('/sign-in?next=/dashboard/keys');
  await page.getByLabel('API key', { exact: true }).fill(key);
  await page.keyboard.press('Enter');
  const rotate = async (proof: string, button: string): Promise<string> => {
    await page.getByRole('button', { name: /^Change / }).click();
    await page.getByRole('button', { name: 'Rotate' }).click();
    expect(await visitor.axe()).toEqual([]);
    await page.getByRole('button', { name: button }).click();
    await page.getByText('Enter the API key that you signed in with.').waitFor();
    await page.getByLabel('API key', { exact: true }).fill(proof);
    await page.keyboard.press('Enter');
    const text = await page.getByRole('region', { name: 'The key', exact: true }).textContent();
    await page.getByRole('button', { name: 'I have copied it' }).click();
    return /svc-sk-v2-\w+/.exec(text!)![0];
  };
  const second = await rotate(key, 'Old text works a day more');
  expect([await statusOf(key), await statusOf(second)]).toEqual([200, 200]);
  // The hash of this proof is not that of the key.
  const third = await rotate(second, 'Refuse the old text now');
  expect([await statusOf(key), await statusOf(second), await statusOf(third)]).toEqual([401, 401, 200]);
  // The browser is signed in by the new text, and the key is the same one.
  await page.reload();
  await page
    .getByRole('table', { name: 'Keys' })
    .getByRole('button', { name: /^Change / })
    .waitFor();
  const inUse = await fetch(`${production.url}/key`, { headers: { authorization: `Bearer ${third}` } });
  expect(await inUse.json()).toMatchObject({ data: { hash } });
  expect(visitor.problems).toEqual([]);
  await visitor.close();
});
