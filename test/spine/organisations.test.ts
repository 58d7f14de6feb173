import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { adHoc } from '../support/ad-hoc.ts';
import { awayFromMidnight } from '../support/away-from-midnight.ts';
import { fill, routesOf } from '../support/route-table.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { SIGN_IN_TOML, signInHeaders, solanaWallet } from '../support/wallets.ts';
import { ACTING } from './acting-routes.ts';
import { createOrganisations, type Reply } from './organisation-world.ts';

// An organisation is an account with members, who act for it by their role and have keys of their own in it.

let spine: Spine;
beforeAll(async () => {
  // What a member spent is counted by months.
  await awayFromMidnight();
  spine = await startSpine({ toml: UNHURRIED + SIGN_IN_TOML });
});
afterAll(() => spine.stop());
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const chat = async (key: string) => (await call(key, 'POST', '/chat/completions', ask('hello !tokens:50'))).status;

const SET_MEMBER = adHoc('UPDATE api_keys SET member = $1 WHERE hash = $2');

const { call, organisation } = createOrganisations(() => spine);

describe('a member', () => {
  test('sees the organisation, its balance and members, and acts for it alone', async () => {
    const { account, people, as } = await organisation();
    const own = await call(people.viewer.key, 'GET', '/organisations');
    expect(own.body.data).toMatchObject([{ account, role: 'viewer' }]);
    expect((await as('viewer')('GET', '/session/balance')).body).toMatchObject({ balance_micro_usdc: 10_000_000 });
    expect((await call(people.viewer.key, 'GET', '/session/balance')).body).toMatchObject({ balance_micro_usdc: 0 });
    const members = (await as('viewer')('GET', '/members')).body.data! as { name: string; role: string }[];
    expect(members.map(({ name, role }) => [name, role])).toEqual([
      ['Olga', 'owner'],
      ['admin', 'admin'],
      ['member', 'member'],
      ['viewer', 'viewer'],
    ]);
  });

  test('has keys of its own there, which pay from the organisation and show whose they are', async () => {
    const { people, as } = await organisation();
    const made = await as('member')('POST', '/keys', { name: 'robot' });
    expect(made).toMatchObject({ status: 201, body: { data: { member: people.member.account } } });
    expect(await chat(made.body.key!)).toBe(200);
    await spine.quiet();
    const listed = (await as('admin')('GET', '/members')).body.data! as {
      role: string;
      keys: number;
      usage_monthly: number;
    }[];
    const { keys, usage_monthly: usage } = listed.find(({ role }) => role === 'member')!;
    expect(keys).toBe(1);
    expect(usage).toBeGreaterThan(0);
    // The key is for calls: it is no way to what the role may not.
    for (const [method, path] of [
      ['POST', '/keys'],
      ['GET', '/limits'],
      ['PATCH', '/limits'],
      ['POST', '/members'],
      ['GET', '/members'],
    ] as const)
      expect(
        (
          await call(
            made.body.key!,
            method,
            path,
            method === 'GET' ? undefined : { account: 'tollgate:local:x', role: 'owner' },
          )
        ).status,
        path,
      ).not.toBe(200);
  });

  test('spends within a budget of its own, over all its keys', async () => {
    const { as, path } = await organisation();
    const keys = [];
    for (const name of ['one', 'two']) keys.push((await as('member')('POST', '/keys', { name })).body.key!);
    const others = (await as('admin')('POST', '/keys', { name: 'other' })).body.key!;
    expect(
      (await as('admin')('PATCH', path('member'), { budgets: [{ limit: 0.0003, limit_reset: 'monthly' }] })).status,
    ).toBe(200);
    expect(await chat(keys[0]!)).toBe(200);
    let last: Reply = { status: 200, body: {} };
    for (let i = 0; i < 9 && last.status === 200; i += 1)
      last = await call(keys[i % 2]!, 'POST', '/chat/completions', ask('hello !tokens:50'));
    expect(last).toMatchObject({ status: 402, body: { budget: { of: 'member', limit_usd: '0.0003' } } });
    expect(await chat(others)).toBe(200);
  });

  test('who is removed stops at once, with its keys', async () => {
    const { account, people, as, path } = await organisation();
    const { key } = (await as('member')('POST', '/keys', {})).body;
    expect(await chat(key!)).toBe(200);
    expect(await as('owner')('DELETE', path('member'))).toMatchObject({ status: 200, body: { removed: true } });
    expect(await chat(key!)).toBe(401);
    expect((await as('member')('GET', '/session/balance')).status).toBe(404);
    expect((await call(people.member.key, 'GET', '/organisations')).body.data).toEqual([]);
    // A row of a key that outlived its member opens nothing either.
    const outlived = (await spine.app.keys.create({ account, label: 'x', kind: 'live' }))!;
    expect(await chat(outlived.text)).toBe(200);
    const { hash } = outlived.record;
    await spine.app.database.query(SET_MEMBER, [people.member.account, hash]);
    await spine.app.keys.update(account, hash, { label: 'y' });
    expect(await chat(outlived.text)).toBe(401);
  });

  test('with a lower role calls no more, until it has its role again', async () => {
    const { as, path } = await organisation();
    const { key } = (await as('member')('POST', '/keys', {})).body;
    expect(await chat(key!)).toBe(200);
    const budgets = [{ limit: 0 }, { limit: 1 }];
    expect((await as('owner')('PATCH', path('member'), { role: 'viewer', budgets })).status).toBe(400);
    expect(await chat(key!)).toBe(200);
    expect((await as('owner')('PATCH', path('member'), { role: 'viewer' })).status).toBe(200);
    expect(await chat(key!)).toBe(401);
    await as('owner')('PATCH', path('member'), { role: 'member' });
    expect(await chat(key!)).toBe(200);
  });

  test('may leave', async () => {
    const { as, path } = await organisation();
    expect((await as('viewer')('DELETE', path('viewer'))).status).toBe(200);
    expect((await as('viewer')('GET', '/members')).status).toBe(404);
  });
});

describe('a role', () => {
  test('bounds what is done for the organisation', async () => {
    const { as, path } = await organisation();
    const key = (await as('admin')('POST', '/keys', {})).body.data! as { hash: string };
    const limits = { requests_per_minute: 1_000 };
    const cases: readonly (readonly [
      string,
      string,
      object | undefined,
      Record<'admin' | 'member' | 'viewer', number>,
    ])[] = [
      ['POST', '/keys', {}, { admin: 201, member: 201, viewer: 403 }],
      ['PATCH', `/keys/${key.hash}`, { name: 'renamed' }, { admin: 200, member: 404, viewer: 403 }],
      ['PATCH', '/limits', limits, { admin: 200, member: 403, viewer: 403 }],
      ['GET', '/limits', undefined, { admin: 200, member: 200, viewer: 200 }],
      ['PATCH', path('member'), { role: 'admin' }, { member: 403, viewer: 403, admin: 200 }],
      ['PATCH', path('member'), { role: 'owner' }, { admin: 403, member: 403, viewer: 403 }],
      ['PATCH', path('owner'), { role: 'viewer' }, { admin: 403, member: 403, viewer: 403 }],
      ['DELETE', path('owner'), undefined, { admin: 403, member: 403, viewer: 403 }],
      ['PATCH', path('admin'), { budgets: [] }, { admin: 403, member: 403, viewer: 403 }],
      [
        'POST',
        '/withdrawals',
        { network: 'eip155:8453', source: 'balance', amount_usd: 1 },
        { admin: 403, member: 403, viewer: 403 },
      ],
    ];
    for (const [method, at, body, expected] of cases)
      for (const role of ['viewer', 'member', 'admin'] as const) {
        if (at === path('member') && role === 'member' && expected.admin === 200) {
          expect((await as(role)(method, at, body)).status).toBe(403);
          continue;
        }
        expect((await as(role)(method, at, body)).status, `${method} ${at} by ${role}`).toBe(expected[role]);
        if (at === path('member') && expected.admin === 200 && role === 'admin')
          await as('owner')('PATCH', at, { role: 'member' });
      }
  });

  test('of the last owner stays', async () => {
    const { as, path } = await organisation();
    const refused = {
      status: 422,
      body: { error: { message: 'This is the last owner. Make another member an owner first' } },
    };
    expect(await as('owner')('DELETE', path('owner'))).toMatchObject(refused);
    expect(await as('owner')('PATCH', path('owner'), { role: 'admin' })).toMatchObject(refused);
    expect((await as('owner')('PATCH', path('admin'), { role: 'owner' })).status).toBe(200);
    const both = await Promise.all([as('owner')('DELETE', path('admin')), as('admin')('DELETE', path('owner'))]);
    expect(both.filter(({ status }) => status === 200).length).toBe(1);
  });
});

test('strangers do not learn whether an account is there', async () => {
  const { account } = await organisation();
  for (const asked of [account, 'tollgate:local:nobody', 'nonsense', spine.account]) {
    const reply = await call((await spine.tenant('stranger', '0')).key, 'GET', '/session/balance', undefined, {
      'x-tollgate-account': asked,
    });
    expect(reply).toMatchObject({ status: 404, body: { error: { message: 'Account not found' } } });
  }
});

test('who acts for an account is counted as itself, also where it is refused', async () => {
  const { account, people, as } = await organisation();
  const slow = await spine.tenant('slow', '0');
  await call(slow.key, 'PATCH', '/limits', { requests_per_minute: 3 });
  await as('owner')('POST', '/members', { account: slow.account, role: 'viewer' });
  await as('owner')('PATCH', '/limits', { requests_per_minute: 1_000 });
  const look = (of: string) => call(slow.key, 'GET', '/session/balance', undefined, { 'x-tollgate-account': of });
  const statuses = [];
  for (const asked of [account, 'tollgate:local:nobody', 'tollgate:local:none', account, account])
    statuses.push((await look(asked)).status);
  expect(statuses).toEqual([200, 404, 404, 429, 429]);
  expect((await call(people.viewer.key, 'GET', '/session/balance')).status).toBe(200);
});

test('rates of an organisation are not used up by members who look', async () => {
  const { as } = await organisation();
  const { key } = (await as('member')('POST', '/keys', {})).body;
  await as('owner')('PATCH', '/limits', { requests_per_minute: 3 });
  for (let i = 0; i < 5; i += 1) expect((await as('viewer')('GET', '/session/balance')).status).toBe(200);
  expect(await chat(key!)).toBe(200);
});

test('nobody acts for a closed organisation until it is reopened', async () => {
  const { account, as } = await organisation();
  const change = async (what: string, more: object = {}) => {
    const path = `/admin/v1/accounts/${encodeURIComponent(account)}/${what}`;
    expect(await call(spine.adminKey, 'POST', path, { reason: 'a test', ...more })).toMatchObject({ status: 200 });
  };
  await change('freeze');
  await change('close', { remainder: 'paid_out', amount_usd: 10, reference: `closed ${account}` });
  for (const role of ['owner', 'admin', 'member', 'viewer'] as const)
    expect(await as(role)('GET', '/session/balance')).toMatchObject({
      status: 403,
      body: { error: { message: 'This account is closed. Ask the operator of this gateway' } },
    });
  await change('reopen');
  expect(await as('viewer')('GET', '/session/balance')).toMatchObject({ status: 200 });
});

test('organisations that others made do not count against those that an account may make', async () => {
  const [stranger, own] = [await spine.tenant('busy', '0'), await spine.tenant('free', '0')];
  let made = 0;
  const make = (key: string) => call(key, 'POST', '/organisations', { label: `x ${made++}` });
  for (let i = 0; i < 20; i += 1) {
    const { account } = (await make(stranger.key)).body.data! as { account: string };
    const headers = { 'x-tollgate-account': account };
    await call(stranger.key, 'POST', '/members', { account: own.account, role: 'owner' }, headers);
  }
  expect(await make(stranger.key)).toMatchObject({
    status: 422,
    body: { error: { message: expect.stringContaining('You have made 20 organisations') as string } },
  });
  const { account } = (await make(own.key)).body.data! as { account: string };
  const listed = async (query: string) =>
    (await call(own.key, 'GET', `/organisations${query}`)).body.data! as readonly { readonly account: string }[];
  expect((await listed('?limit=2'))[0]).toMatchObject({ account });
  expect(await listed('?offset=20')).toHaveLength(1);
});

test('nobody acts for another account where it is not said to be possible', async () => {
  const { account, people } = await organisation();
  const acting: string[] = [];
  const wrong: string[] = [];
  for (const { method, path } of routesOf(spine.app.server)) {
    if (!path.startsWith('/api/v1/') || method === 'HEAD' || method === 'OPTIONS') continue;
    const send = (headers: Record<string, string>) =>
      spine.app.server.inject({
        method: method as 'GET',
        url: fill(path, { '*': 'x' }),
        headers,
        ...(method === 'GET' || method === 'DELETE' ? {} : { payload: {} }),
      });
    const name = `${method} ${path}`;
    // Whoever asks for no credential takes no notice of a header that is about one.
    if ((await send({})).statusCode !== 401) continue;
    const reply = await send({ authorization: `Bearer ${people.viewer.key}`, 'x-tollgate-account': account });
    if (reply.payload.includes('This endpoint does not accept x-tollgate-account')) {
      if (reply.statusCode !== 403) wrong.push(`${name}: ${reply.statusCode}`);
    } else acting.push(name);
  }
  expect(wrong).toEqual([]);
  const expected = Object.entries(ACTING).flatMap(([path, methods]) =>
    methods.split(' ').map((method) => `${method} /api/v1${path}`),
  );
  expect(new Set(acting)).toEqual(new Set(expected));
});

test('keys at providers are for an admin alone, also to read', async () => {
  const { account, people } = await organisation();
  for (const [role, status] of [
    ['viewer', 403],
    ['member', 403],
    ['admin', 200],
  ] as const) {
    const answer = await spine.get('/provider-keys', {
      authorization: `Bearer ${people[role].key}`,
      'x-tollgate-account': account,
    });
    expect([role, answer.status]).toEqual([role, status]);
  }
});

test('over JSON-RPC a member acts as over HTTP, and calls nothing', async () => {
  const { account, people } = await organisation();
  const rpc = (body: unknown) =>
    call(people.viewer.key, 'POST', '/rpc', body as object, { 'x-tollgate-account': account });
  const balance = { jsonrpc: '2.0', id: 1, method: 'account/balance' };
  const acted = { id: 1, result: { balance_micro_usdc: 10_000_000 } };
  const chatted = { jsonrpc: '2.0', id: 2, method: 'chat/completions', params: ask('hello') };
  const refused = { id: 2, error: { data: { type: 'permission_denied' } } };
  expect((await rpc(balance)).body).toMatchObject(acted);
  expect(await rpc(chatted)).toMatchObject({ status: 403, body: refused });
  expect((await rpc([balance, chatted])).body).toMatchObject([acted, refused]);
});

test('a wallet that is a member proves itself for each change', async () => {
  const { as, account } = await organisation();
  const wallet = solanaWallet();
  expect((await as('owner')('POST', '/members', { account: wallet.account, role: 'admin' })).status).toBe(201);
  const headers = {
    ...(await signInHeaders(wallet)),
    'x-tollgate-account': account,
    'content-type': 'application/json',
  };
  const send = (method: string, body?: object) =>
    fetch(`${spine.url}/limits`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  expect((await send('GET')).status).toBe(200);
  expect(await (await fetch(`${spine.url}/session/balance`, { headers })).json()).toMatchObject({
    caip_account_id: account,
  });
  expect((await send('PATCH', { tokens_per_minute: 5 })).status).toBe(401);
  expect(await (await send('GET')).json()).toMatchObject({ data: { tokens_per_minute: null } });
});

test('a member who cannot be added does not use up the signature of the wallet that adds', async () => {
  const { as, account } = await organisation();
  const [wallet, other] = [solanaWallet(), solanaWallet()];
  expect((await as('owner')('POST', '/members', { account: wallet.account, role: 'admin' })).status).toBe(201);
  const { nonce } = (await (await spine.get('/auth/nonce')).json()) as { nonce: string };
  const headers = { ...(await signInHeaders(wallet, { nonce })), 'x-tollgate-account': account };
  const add = async (member: string) =>
    (await spine.post('/members', { account: member, role: 'member' }, headers)).status;
  expect([
    await add('nobody'),
    await add(account),
    await add(wallet.account),
    await add(other.account),
    await add(solanaWallet().account),
  ]).toEqual([400, 400, 422, 201, 401]);
});

test('a key with limits of its own acts for nobody', async () => {
  const { account, people } = await organisation();
  const { text } = (await spine.app.keys.create({
    account: people.owner.account,
    label: 'x',
    kind: 'live',
    limit: 5n,
  }))!;
  const reply = await call(text, 'GET', '/session/balance', undefined, { 'x-tollgate-account': account });
  expect(reply.status).toBe(403);
});

test('the operator names members of any account, and all of it is logged', async () => {
  const { account } = await spine.tenant('plain', '1');
  const member = await spine.tenant('boss', '0');
  const at = `/admin/v1/accounts/${account}/members`;
  expect(await call(spine.adminKey, 'POST', at, { account: member.account, role: 'owner' })).toMatchObject({
    status: 201,
  });
  const balance = await call(member.key, 'GET', '/session/balance', undefined, { 'x-tollgate-account': account });
  expect(balance.body).toMatchObject({ balance_micro_usdc: 1_000_000 });
  expect((await call(spine.adminKey, 'DELETE', `${at}/${member.account}`)).status).toBe(422);
  expect((await call(spine.adminKey, 'GET', at)).body.data).toMatchObject([{ account: member.account, role: 'owner' }]);
  const log = (await call(spine.adminKey, 'GET', '/admin/v1/audit-log')).body.data! as {
    method: string;
    path: string;
  }[];
  expect(log.slice(0, 2).map(({ method }) => method)).toEqual(['DELETE', 'POST']);
});

test('an organisation gets no label that is, or looks like, that of another account or of the operator', async () => {
  const { key } = await spine.tenant('squatter', '0');
  const admin = (method: string, path: string, body: object) =>
    fetch(`${spine.origin}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  expect((await admin('POST', '/accounts', { name: 'globex', label: 'Initech Ltd' })).status).toBe(201);
  const make = (label: string) => call(key, 'POST', '/organisations', { label });
  const refused = [
    'Initech Ltd',
    'INITECH  LTD',
    'globex',
    'Ini\u200btech Ltd',
    'a\u202eb',
    '\u0406nitech Ltd',
    'tollgate:local:globex',
    'Tollgate',
    'T0LLGATE',
    'Operator',
  ];
  for (const label of refused)
    expect.soft(await make(label), label).toMatchObject({ status: 422, body: { error: { param: 'label' } } });
  expect((await make('Own Ltd')).status).toBe(201);
  expect((await make('Own Ltd')).status).toBe(422);
  expect((await admin('POST', '/accounts', { name: 'late', label: 'own ltd' })).status).toBe(422);
});
