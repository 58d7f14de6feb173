import { afterAll, beforeAll, expect, test } from 'vitest';
import { atThisLoad } from '../../support/at-this-load.ts';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { pageHolds } from './page-holds.ts';

// What an operator and a member of an organisation are asked in a week, each answered from the pages alone.

let spine: Spine;
let browser: TestBrowser;
let ada: Awaited<ReturnType<Spine['tenant']>>;
/** A key of Ada for calls of the organisation. */
let key: string;
let organisation: string;
const calls: string[] = [];
beforeAll(async () => {
  [spine, browser] = await Promise.all([
    startSpine({ toml: `${UNHURRIED}\n[analytics]\nevery_ms = 100\n` }),
    openBrowser(),
  ]);
  ada = await spine.tenant('ada', '0');
  ({ account: organisation } = await post<{ data: { account: string } }>('/organisations', {
    label: 'Cedar Clinics',
    name: 'Ada',
  }).then(({ data }) => data));
  await fetch(`${spine.origin}/admin/v1/accounts/${organisation}/credit`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amount_usd: '5', reference: 'invoice-1' }),
  });
  ({ key } = await post<{ key: string }>('/keys', { name: 'research' }, organisation));
  for (const text of ['hello', '!status:500']) {
    const answer = await spine.post('/chat/completions', ask(text), { authorization: `Bearer ${key}` });
    await answer.text();
    calls.push(answer.headers.get('x-generation-id')!);
  }
});
afterAll(async () => {
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

async function post<T>(path: string, body: object, account?: string): Promise<T> {
  const answer = await spine.post(path, body, {
    authorization: `Bearer ${ada.key}`,
    ...(account === undefined ? {} : { 'x-tollgate-account': account }),
  });
  expect(answer.ok, path).toBe(true);
  return (await answer.json()) as T;
}

const counted = async () => {
  const headers = { authorization: `Bearer ${ada.key}`, 'x-tollgate-account': organisation };
  const { totals } = (await (await spine.get('/analytics/own', headers)).json()) as {
    readonly totals: Readonly<Record<string, number>>;
  };
  return totals['requests']! + totals['failed']!;
};

async function signIn(): Promise<Visitor> {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto('/sign-in');
  await page.getByLabel('API key', { exact: true }).fill(ada.key);
  await page.getByRole('button', { name: 'Sign in with the key' }).click();
  await page.getByRole('button', { name: 'Act for Cedar Clinics' }).click();
  await page.getByText('You act for').waitFor();
  return visitor;
}

test('a member is led to the organisation, and sees who spent, why, and one call by its id', async () => {
  await expect.poll(counted, { interval: 20, timeout: atThisLoad(20_000) }).toBe(2);
  const visitor = await signIn();
  const { page } = visitor;
  await page.goto('/dashboard/activity');
  await page.getByRole('button', { name: 'Member', exact: true }).click();
  await page.getByRole('button', { name: 'Today', exact: true }).click();
  await page.getByRole('cell', { name: 'Ada' }).waitFor();
  await pageHolds(visitor);
  await page.getByRole('button', { name: 'Key', exact: true }).click();
  await page.getByRole('link', { name: 'research' }).click();
  const table = page.getByRole('table', { name: 'Calls' });
  await expect.poll(() => table.getByRole('row').count()).toBe(3);
  // The list says why a call failed, and where.
  await table.getByText('Provider Test failed').waitFor();
  await pageHolds(visitor);

  await page.goto('/dashboard/calls');
  await page.getByLabel('Id of a call').fill(calls[0]!);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Money' }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/dashboard/calls/${calls[0]}`);
  await visitor.close();
});

test('the statement has the name of the account, every sign, and FOCUS beside it', async () => {
  const visitor = await signIn();
  const { page } = visitor;
  await page.goto('/dashboard/statement');
  await page.getByText('Cedar Clinics').nth(1).waitFor();
  await page.getByRole('cell', { name: '+$5.000000' }).waitFor();
  await page.getByRole('cell', { name: /^−\$0\.0000\d\d$/ }).waitFor();
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'FOCUS', exact: true }).click(),
  ]);
  expect(file.suggestedFilename()).toMatch(/^focus-\d{4}-\d\d\.csv$/);
  await pageHolds(visitor);
  await visitor.close();
});

test('amounts of a column stand below each other by their points', async () => {
  const visitor = await signIn();
  const { page } = visitor;
  await page.goto('/dashboard/calls');
  const amounts = page.getByRole('table', { name: 'Calls' }).locator('td .money');
  await amounts.nth(1).waitFor();
  const shown = await amounts.evaluateAll<
    { text: string; rest: string }[],
    { textContent: string; dataset: { rest?: string } }
  >((all) => all.map(({ textContent, dataset }) => ({ text: textContent, rest: dataset.rest ?? '' })));
  const decimals = shown.map(({ text, rest }) => (text + rest).split('.')[1]?.length);
  expect(shown.map(({ text }) => text)).toContain('$0');
  expect(new Set(decimals).size).toBe(1);
  await visitor.close();
});

test('an operator stops a key that leaked, from the page of its account', async () => {
  const visitor = await browser.visit({ origin: spine.origin });
  const { page } = visitor;
  await page.goto(`/admin?tab=accounts&account=${encodeURIComponent(organisation)}`);
  await page.getByLabel('Admin key').fill(spine.adminKey);
  await page.getByRole('button', { name: 'Sign in as the operator' }).click();
  const act = async (name: string) => {
    await page.getByRole('button', { name: 'Change the key research' }).click();
    const dialog = page.getByRole('dialog', { name: 'research' });
    await dialog.getByRole('button', { name, exact: true }).waitFor();
    await pageHolds(visitor);
    await dialog.getByRole('button', { name, exact: true }).click();
    const confirm = page.getByRole('dialog', { name: 'Confirm with the admin key' });
    await confirm.getByLabel('Admin key').fill(spine.adminKey);
    await confirm.getByRole('button', { name: 'Confirm' }).click();
    await confirm.waitFor({ state: 'hidden' });
    await dialog.waitFor({ state: 'hidden' });
  };
  const status = async () =>
    (await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` })).status;
  const rate = async (typed: string) => {
    await page.getByRole('button', { name: 'Change the key research' }).click();
    const dialog = page.getByRole('dialog', { name: 'research' });
    await dialog.getByLabel('Requests a minute').fill(typed);
    await dialog.getByRole('button', { name: 'Change the limits' }).click();
    const confirm = page.getByRole('dialog', { name: 'Confirm with the admin key' });
    await confirm.getByLabel('Admin key').fill(spine.adminKey);
    await confirm.getByRole('button', { name: 'Confirm' }).click();
    await dialog.waitFor({ state: 'hidden' });
    const answer = await spine.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` });
    return [answer.status, answer.headers.get('x-ratelimit-limit-requests')];
  };
  expect(await rate('7')).toEqual([200, '7']);
  expect(await rate('900')).toEqual([200, '900']);
  expect(await status()).toBe(200);
  await act('Disable');
  expect(await status()).toBe(401);
  await act('Enable');
  expect(await status()).toBe(200);
  await act('Revoke');
  await page.getByText('No key', { exact: true }).waitFor();
  expect(await status()).toBe(401);
  await visitor.close();
});
