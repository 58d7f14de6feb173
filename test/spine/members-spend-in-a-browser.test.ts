import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { openBrowser, type Seen } from '../gateway/auth/sessions/browser.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A member without money of their own calls in the browser, by the session's cookie, and the organisation pays.

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: UNHURRIED });
});
afterAll(() => spine.stop());
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

interface Key {
  readonly hash: string;
  readonly name: string;
  readonly client: string | null;
  readonly member: string | null;
  readonly usage: number;
}

let count = 0;
async function world(role: 'viewer' | 'member' | 'admin' = 'member', limits: object = {}) {
  count += 1;
  const owner = await spine.tenant(`boss-${count}`, '0');
  const person = await spine.tenant(`person-${count}`, '0');
  const send = async (key: string, method: string, path: string, body?: object, headers: object = {}) => {
    const response = await fetch(`${spine.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { data: never };
    expect(response.status, JSON.stringify(answer)).toBeLessThan(300);
    return answer;
  };
  const { account } = (await send(owner.key, 'POST', '/organisations', { label: `Org ${count}` })).data as {
    readonly account: string;
  };
  const acting = { 'x-tollgate-account': account };
  const to = escrowOf(account);
  await spine.app.ledger.transfer({ id: `fund ${to}`, from: treasuryOf('operator'), to, amount: 1_000_000n, memo: '' });
  const boss = (method: string, path: string, body?: object) => send(owner.key, method, path, body, acting);
  await boss('POST', '/members', { account: person.account, role });
  const member = `/members/${encodeURIComponent(person.account)}`;
  if (Object.keys(limits).length > 0) await boss('PATCH', member, limits);
  const browser = openBrowser(spine.origin);
  expect((await browser.ask('POST', '/api/v1/auth/session', { api_key: person.key })).status).toBe(200);
  const chat = (headers: Readonly<Record<string, string>> = acting, more: object = {}) =>
    browser.ask('POST', '/api/v1/chat/completions', ask('hello !tokens:50', more), headers);
  const keys = async () => (await boss('GET', '/keys')).data as readonly Key[];
  const balance = async () => (await spine.app.ledger.balance(to))!.available;
  return { account, acting, person, browser, boss, member, chat, keys, balance };
}
const textOf = (seen: Seen) => seen.body.error?.message;

test('a call is paid by the organisation, and stands in its books as one of a key of the member', async () => {
  const { person, chat, keys, balance, browser, acting } = await world();
  // The person has no money.
  expect((await chat({})).status).toBe(424);
  const answers = await Promise.all([chat(), chat(), chat()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  const [key, ...others] = await keys();
  expect([others, key]).toEqual([
    [],
    expect.objectContaining({
      name: 'Playground',
      client: 'the playground of this gateway',
      member: person.account,
    }),
  ]);
  await spine.quiet();
  expect(BigInt(Math.round((await keys())[0]!.usage * 1e6))).toBe(1_000_000n - (await balance()));
  // The member sees the call among those of the organisation.
  const id = String(answers[0].headers['x-generation-id']);
  const seen = await browser.ask('GET', `/api/v1/generation?id=${id}`, undefined, acting);
  expect(seen).toMatchObject({ status: 200, body: { data: { id } } });
});

test('the budget, the services and the price to ask above of the member hold', async () => {
  const budget = { limit: 0.0001, limit_reset: 'monthly', limit_soft: false };
  const poor = await world('member', { budgets: [budget] });
  const beyond = await poor.chat();
  expect([beyond.status, textOf(beyond)]).toEqual([402, expect.stringContaining('Budget of this member is too low')]);
  const narrow = await world('member', { allowed_services: ['another/service'] });
  expect((await narrow.chat()).status).toBe(403);
  const asking = await world('member', { ask_above: 0 });
  const waiting = await asking.chat();
  expect([waiting.status, textOf(waiting)]).toEqual([403, expect.stringContaining('a person has to accept it first')]);
  for (const { balance } of [poor, narrow, asking]) expect(await balance()).toBe(1_000_000n);
});

test('a rate of the organisation counts such calls', async () => {
  const { boss, chat } = await world();
  await boss('PATCH', '/limits', { requests_per_minute: 2 });
  const statuses = [];
  for (let calls = 0; calls < 4; calls += 1) statuses.push((await chat()).status);
  expect(statuses[0]).toBe(200);
  expect(statuses.at(-1)).toBe(429);
});

test('a viewer, a stranger, a removed member and a limited key do not spend', async () => {
  const viewer = await world('viewer');
  expect(await viewer.chat()).toMatchObject({ status: 403 });
  const other = await world();
  expect((await viewer.chat(other.acting)).status).toBe(404);
  expect((await other.chat()).status).toBe(200);
  await other.boss('DELETE', other.member);
  expect((await other.chat()).status).toBe(404);
  expect(await other.keys()).toEqual([]);

  const third = await world();
  const limited = await spine.app.keys.create({ account: third.person.account, label: 'few', kind: 'live', limit: 1n });
  expect((await third.browser.ask('POST', '/api/v1/auth/session', { api_key: limited?.text })).status).toBe(200);
  expect((await third.chat()).status).toBe(403);
  expect([await third.keys(), await third.balance()]).toEqual([[], 1_000_000n]);
});

test('only a browser calls so: a key, a wallet or a token of its own is for programs', async () => {
  const { person, acting, balance } = await world();
  const answer = await spine.post('/chat/completions', ask('hello'), {
    authorization: `Bearer ${person.key}`,
    ...acting,
  });
  expect([answer.status, await answer.text()]).toEqual([
    403,
    expect.stringContaining('This endpoint does not accept x-tollgate-account'),
  ]);
  expect(await balance()).toBe(1_000_000n);
});

test('a page of another site spends nothing', async () => {
  const { chat, acting, balance } = await world();
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'x-tollgate-web': '' }])
    expect((await chat({ ...acting, ...(headers as object) })).status).toBe(403);
  expect(await balance()).toBe(1_000_000n);
});

test('the key is limited, disabled and deleted like any other', async () => {
  const { chat, keys, boss } = await world();
  expect((await chat()).status).toBe(200);
  const { hash } = (await keys())[0]!;
  await boss('PATCH', `/keys/${hash}`, { disabled: true });
  const refused = await chat();
  expect([refused.status, textOf(refused)]).toEqual([
    403,
    'Your key of the playground in this account is disabled: somebody who may change keys there can enable it',
  ]);
  await boss('PATCH', `/keys/${hash}`, { disabled: false, limit: 0 });
  expect((await chat()).status).toBe(402);
  await boss('DELETE', `/keys/${hash}`);
  // The next call makes another one.
  expect((await chat()).status).toBe(200);
  expect((await keys()).map((key) => key.hash)).not.toContain(hash);
});
