import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type TestBrowser, type Visitor } from '../../support/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { localAccount } from '#accounts/names';

// What the forms of the account's pages show of the values that are set, and what they change of them.

let spine: Spine;
let browser: TestBrowser;
let visitor: Visitor;
let headers: Record<string, string>;
beforeAll(async () => {
  [spine, browser] = await Promise.all([startSpine({ toml: UNHURRIED, mode: 'development' }), openBrowser()]);
  visitor = await browser.visit({ origin: spine.origin });
  // The local developer is signed in by itself.
  const { key } = await spine.tenant('dev', '1');
  headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
});
afterAll(async () => {
  expect(visitor.problems).toEqual([]);
  await browser.close();
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

test('the receipt of a call that ends while its page is open', async () => {
  const { page } = visitor;
  const open = Promise.withResolvers<void>();
  spine.provider.hold(open.promise);
  const call = spine.post('/chat/completions', ask('hello'), headers);
  await expect.poll(() => spine.locks()).toHaveLength(1);
  const [id] = await spine.locks();
  await page.goto(`/dashboard/calls/${id}`);
  await page.getByText('The receipt comes with the charge').waitFor();
  open.resolve();
  spine.provider.hold(null);
  await (await call).text();
  await page.getByText('Show or change the text').waitFor();
  await page.getByText(id!, { exact: true }).nth(1).waitFor();
  expect(await page.getByText('This is no receipt').count()).toBe(0);
});

test('the charge of a call can be computed from what its page says', async () => {
  const { page } = visitor;
  const call = await spine.post('/chat/completions', ask('hello'), { ...headers, 'x-tollgate-tags': 'team=search' });
  await call.text();
  const { id, cost_micro_usdc: charged } = await spine.generation(
    call.headers.get('x-generation-id'),
    headers['authorization']!.slice('Bearer '.length),
  );
  await page.goto(`/dashboard/calls/${id}`);
  const shown = (await page.getByText(/× \$/).textContent())!;
  const sums = [...shown.matchAll(/([\d,]+) \w+ × \$([\d.]+)\/M/g)].map(
    ([, units, usd]) => Number(units!.replaceAll(',', '')) * Number(usd),
  );
  expect(sums).toHaveLength(2);
  expect(Math.ceil(sums.reduce((all, one) => all + one, 0))).toBe(charged);
  await page.getByText('team=search', { exact: true }).first().waitFor();
  const price = await page.getByRole('link', { name: 'The price that was agreed' }).getAttribute('href');
  const { data } = (await (await fetch(`${spine.origin}${price}`)).json()) as {
    data: { rates: Record<string, string> };
  };
  expect(data.rates).toMatchObject({ prompt: '0.000001', completion: '0.000002' });
});

test('a key that stops at 00:00 has the day before as its last day, also when it is changed', async () => {
  const { page } = visitor;
  const made = await spine.post('/keys', { label: 'ends', expires_at: '2099-12-02T00:00:00Z' }, headers);
  expect(made.status).toBe(201);
  await page.goto('/dashboard/keys');
  await page.getByRole('button', { name: 'Change ends' }).click();
  expect(await page.getByLabel('Last day').inputValue()).toBe('2099-12-01');
  await page.getByLabel('Name').fill('ends late');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Change ends late' }).waitFor();
  const { data } = (await (await spine.get('/keys', headers)).json()) as { data: Record<string, unknown>[] };
  expect(data.find(({ label }) => label === 'ends late')).toMatchObject({ expires_at: '2099-12-02T00:00:00.000Z' });
});

test('a tool that was typed is in the key at the first press on Save', async () => {
  const { page } = visitor;
  await spine.post('/keys', { label: 'typed' }, headers);
  await page.goto('/dashboard/keys');
  await page.getByRole('button', { name: 'Change typed' }).click();
  await page.getByLabel('Services and tools').fill('demo/tools/roll_dice');
  // With the mouse alone: a form that grows between the press and its end would lose it.
  const { x, y, width, height } = (await page.getByRole('button', { name: 'Save' }).boundingBox())!;
  await page.mouse.click(x + width / 2, y + height / 2);
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  const { data } = (await (await spine.get('/keys', headers)).json()) as { data: Record<string, unknown>[] };
  expect(data.find(({ label }) => label === 'typed')).toMatchObject({ allowed_services: ['demo/tools/roll_dice'] });
});

test('what a key says of streams that break off is changed in its form', async () => {
  const { page } = visitor;
  await spine.post('/keys', { label: 'streams', continue: false }, headers);
  await page.goto('/dashboard/keys');
  const continues = async () => {
    const { data } = (await (await spine.get('/keys', headers)).json()) as { data: Record<string, unknown>[] };
    return data.find(({ label }) => label === 'streams')!['continue'];
  };
  for (const [before, chosen, after] of [
    ['false', 'true', true],
    ['true', '', null],
  ] as const) {
    await page.getByRole('button', { name: 'Change streams' }).click();
    const choice = page.getByLabel('A stream that breaks off');
    expect(await choice.inputValue()).toBe(before);
    await choice.selectOption(chosen);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await continues()).toBe(after);
  }
});

test('a call that waits for a person is accepted on its page, and runs', async () => {
  const { page } = visitor;
  const made = await spine.post('/keys', { label: 'asks', ask_above: 0 }, headers);
  const { key } = (await made.json()) as { key: string };
  const call = () => spine.post('/chat/completions', ask('canary of a call'), { authorization: `Bearer ${key}` });
  const { approval } = (await (await call()).json()) as { approval: { url: string } };
  await page.goto(approval.url);
  await page.getByText('canary of a call').waitFor();
  expect(await visitor.axe()).toEqual([]);
  await page.getByRole('button', { name: 'Accept' }).click();
  await page.getByText('accepted', { exact: true }).waitFor();
  expect((await call()).status).toBe(200);
  expect((await call()).status).toBe(403);
});

test('budgets of both kinds stay as they are when a rate is changed', async () => {
  const { page } = visitor;
  const limits = async () => {
    const { data } = (await (await spine.get('/limits', headers)).json()) as { data: { budgets: object[] } };
    return data;
  };
  const budgets = [
    { limit: 5, limit_reset: 'daily', limit_soft: true },
    { limit: 50, limit_reset: 'monthly', limit_soft: false },
  ];
  const set = await fetch(`${spine.url}/limits`, { method: 'PATCH', headers, body: JSON.stringify({ budgets }) });
  expect(set.status).toBe(200);
  await page.goto('/dashboard/organisation');
  const save = async (label: string, value: string) => {
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    await page.getByRole('dialog').getByLabel(label).fill(value);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  };
  await save('Requests a minute', '77');
  expect(await limits()).toMatchObject({ requests_per_minute: 77, budgets });
  await save('Each month', '60');
  expect(await limits()).toMatchObject({
    requests_per_minute: 77,
    budgets: [budgets[0], { ...budgets[1], limit: 60 }],
  });
});

test('all keys are listed, also beyond the first page of the API', async () => {
  const { page } = visitor;
  const account = localAccount('dev');
  for (let at = 0; at < 110; at += 1) await spine.app.keys.create({ account, label: `key ${at}`, kind: 'live' });
  await page.goto('/dashboard/keys');
  await page.getByText('key 0', { exact: true }).waitFor();
  expect(await page.getByRole('table', { name: 'Keys' }).getByRole('row').count()).toBeGreaterThan(110);
});

test('a link to the sign-in leads back to the page with its filters', async () => {
  const { page } = visitor;
  await page.goto('/dashboard');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  await page.goto('/dashboard/calls?state=held&service=test%2Fmodel');
  await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign in as the local developer' }).click();
  await page.getByRole('heading', { level: 1, name: 'Calls' }).waitFor();
  const filters = new URL(page.url()).searchParams;
  expect([...filters]).toEqual([
    ['state', 'held'],
    ['service', 'test/model'],
  ]);
});
