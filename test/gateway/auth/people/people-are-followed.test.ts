import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { adHoc } from '../../../support/ad-hoc.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { A_BUDGET } from '../../authorization/support/person.ts';
import { registerRaw } from '../../authorization/support/raw-client.ts';
import { type Company, peopleToml, startCompany } from './company.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

// What the provider says later becomes rights here, and what it does not say ends.

const RULES = `
[[people.groups]]
group = "staff"
organisation = "acme"

[[people.groups]]
group = "ops"
admin = ["read"]
`;
const MINUTE = 60_000;
const ACME = { 'x-tollgate-account': 'tollgate:local:acme' };

let company: Company;
let gateway: Spine;
let ahead = 0;
beforeAll(async () => {
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  company = await startCompany(origin);
  const toml = `[authorization]\nenabled = true\n[server]\npublic_url = "${origin}"\n${UNHURRIED}${peopleToml(company.issuer, RULES)}`;
  gateway = await startSpine({ port, toml, now: () => Date.now() + ahead, elapsed: () => performance.now() });
});
afterAll(async () => {
  await gateway.stop();
  await company.stop();
});

const signIn = async (person: string, groups: readonly string[]): Promise<Visitor> => {
  company.person = person;
  company.groups.set(person, groups);
  const visitor = openVisitor(gateway.origin);
  const page = await visitor.go(gateway.origin + START);
  expect(page.searchParams.get('people')).toBe('done');
  return visitor;
};
const makeKey = async (visitor: Visitor): Promise<string> => {
  const made = await visitor.ask('POST', '/api/v1/keys', { label: 'mine' }, ACME);
  expect(made.status).toBe(201);
  return ((await made.json()) as { readonly key: string }).key;
};
interface Credentials {
  readonly [what: string]: string;
}

/** Every kind of credential that hangs on a person: API keys, and the token of a program that signed in. */
async function credentialsOf(visitor: Visitor): Promise<Credentials> {
  const { account } = (await (await visitor.ask('GET', '/api/v1/auth/session')).json()) as { readonly account: string };
  const made = await gateway.post('/organisations', { label: `Guild of ${account.split(':').at(-1)}` });
  const guild = { 'x-tollgate-account': ((await made.json()) as { data: { account: string } }).data.account };
  expect((await gateway.post('/members', { account, role: 'owner' }, { ...own(), ...guild })).status).toBe(201);
  const keyOf = async (headers: Readonly<Record<string, string>>) => {
    const answer = await visitor.ask('POST', '/api/v1/keys', { label: 'mine' }, headers);
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { readonly key: string }).key;
  };
  const client = await registerRaw(gateway.origin, { resource: `${gateway.origin}/api/v1` });
  const page = await visitor.go(client.authorizeUrl());
  const allowed = await visitor.ask('POST', `${page.pathname}/request`, limitsNow(), ACME);
  expect(allowed.status, await allowed.clone().text()).toBe(200);
  const answer = await visitor.step(((await allowed.json()) as { redirect_to: string }).redirect_to);
  return {
    'key of the membership by a group': await keyOf(ACME),
    'key of a membership by hand': await keyOf(guild),
    "key of the person's own account": await keyOf({}),
    'token of a program': (await client.redeem(answer!)).body.access_token,
  };
}
const own = () => ({ authorization: `Bearer ${gateway.key}` });
const limitsNow = () => ({
  ...A_BUDGET,
  expires_at: new Date(Date.now() + ahead + 60 * 24 * 60 * MINUTE).toISOString(),
});
const statuses = async (credentials: Credentials) =>
  Object.fromEntries(
    await Promise.all(Object.entries(credentials).map(async ([what, key]) => [what, await statusOf(key)])),
  );
const all = (credentials: Credentials, status: number) =>
  Object.fromEntries(Object.keys(credentials).map((what) => [what, status]));
const statusOf = async (key: string) => (await gateway.get('/credits', { authorization: `Bearer ${key}` })).status;
const session = async (visitor: Visitor) => (await visitor.ask('GET', '/api/v1/keys')).status;
const soon = (check: () => Promise<void>) => vi.waitFor(check, { timeout: atThisLoad(15_000), interval: 100 });

// First, because the clock of the provider does not go ahead with that of the gateway.
test('back-channel logout ends all sessions of the person, and keys stay while the provider knows the person', async () => {
  const one = await signIn('bob', ['staff']);
  const two = await signIn('bob', ['staff']);
  const key = await makeKey(two);
  const before = company.tokenRequests();
  await company.signOut('bob');
  expect([await session(one), await session(two)]).toEqual([401, 401]);
  await soon(async () => expect(company.tokenRequests()).toBeGreaterThan(before));
  expect(await statusOf(key)).toBe(200);
});

test('a deleted person loses every session, key and program at once by back-channel logout', async () => {
  const visitor = await signIn('dan', ['staff']);
  const credentials = await credentialsOf(visitor);
  expect(await statuses(credentials)).toEqual(all(credentials, 200));
  company.groups.delete('dan');
  await company.signOut('dan');
  expect(await session(visitor)).toBe(401);
  await soon(async () => expect(await statuses(credentials)).toEqual(all(credentials, 401)));
});

test('a person who leaves a group loses the membership with its keys, and stays signed in', async () => {
  const visitor = await signIn('ann', ['staff']);
  const key = await makeKey(visitor);
  expect(await statusOf(key)).toBe(200);
  company.groups.set('ann', []);
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statusOf(key)).toBe(401));
  expect(await session(visitor)).toBe(200);
  expect((await visitor.ask('GET', '/api/v1/keys', undefined, ACME)).status).toBe(404);
});

const NAMES = adHoc('SELECT name FROM people');

test('a provider that says nothing of groups takes nothing away, and one that lists none does', async () => {
  const [visitor, boss] = [await signIn('tim', ['staff']), await signIn('tia', ['ops'])];
  const key = await makeKey(visitor);
  const nothing = [
    {
      groups: undefined,
      _claim_names: { groups: 'graph' },
      _claim_sources: { graph: { endpoint: 'https://graph.example/groups' } },
    },
    { groups: undefined, hasgroups: true },
    { groups: null },
    { groups: { 0: 'other' } },
  ];
  for (const [index, said] of nothing.entries()) {
    const name = `said ${index}`;
    for (const person of ['tim', 'tia']) company.claims.set(person, { ...said, name });
    ahead += 11 * MINUTE;
    await soon(async () => {
      const names = (await gateway.app.database.query(NAMES)).map((row) => row['name']);
      expect(names.filter((one) => one === name)).toHaveLength(2);
    });
    expect([await statusOf(key), (await boss.ask('GET', '/admin/v1/accounts')).status]).toEqual([200, 200]);
  }
  for (const person of ['tim', 'tia']) company.claims.set(person, { groups: [] });
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statusOf(key)).toBe(401));
  await soon(async () => expect((await boss.ask('GET', '/admin/v1/accounts')).status).toBe(401));
});

test('a provider that leaves out the groups of who is in none takes them away', async () => {
  const [visitor, boss] = [await signIn('tom', ['staff']), await signIn('tea', ['ops'])];
  const key = await makeKey(visitor);
  for (const person of ['tom', 'tea']) company.claims.set(person, { groups: undefined });
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statusOf(key)).toBe(401));
  await soon(async () => expect((await boss.ask('GET', '/admin/v1/accounts')).status).toBe(401));
  expect(await session(visitor)).toBe(200);
});

test('an administrator who leaves the group loses the right at the next refresh', async () => {
  const visitor = await signIn('oli', ['ops']);
  expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(200);
  company.groups.set('oli', []);
  ahead += 11 * MINUTE;
  await soon(async () => expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(401));
});

test('a deleted person loses every session, key and program at the next refresh', async () => {
  const visitor = await signIn('del', ['staff']);
  const credentials = await credentialsOf(visitor);
  expect(await statuses(credentials)).toEqual(all(credentials, 200));
  company.groups.delete('del');
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statuses(credentials)).toEqual(all(credentials, 401)));
  await soon(async () => expect(await session(visitor)).toBe(401));
});

// The database refuses the next refresh token, as if the gateway had died before it stored it.
const [FORGETFUL, MINDFUL] = [
  adHoc(
    "CREATE TRIGGER forgetful BEFORE UPDATE OF refresh_token ON people WHEN NEW.due_at = OLD.due_at BEGIN SELECT RAISE(ABORT, 'died'); END",
  ),
  adHoc('DROP TRIGGER forgetful'),
];

test('a refresh token that was lost on the way takes the sessions, and no keys until somebody can be asked', async () => {
  const visitor = await signIn('eve', ['staff']);
  const key = await makeKey(visitor);
  const { database } = gateway.app;
  await database.query(FORGETFUL);
  const before = company.tokenRequests();
  ahead += 11 * MINUTE;
  await soon(async () => expect(company.tokenRequests()).toBeGreaterThan(before));
  await soon(async () => expect(gateway.logs.join('\n')).toContain('could not be followed'));
  await database.query(MINDFUL);
  expect(await session(visitor)).toBe(200);
  // Another gateway asks, with the token that was used.
  ahead += 2 * MINUTE;
  await soon(async () => expect(await session(visitor)).toBe(401));
  expect(gateway.logs.join('\n')).toContain('the person has to sign in again');
  expect(await statusOf(key)).toBe(200);
  const again = await signIn('eve', ['staff']);
  ahead += 11 * MINUTE;
  await soon(async () => expect(company.tokenRequests()).toBeGreaterThan(before + 2));
  expect([await session(again), await statusOf(key)]).toEqual([200, 200]);
  company.groups.delete('eve');
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statusOf(key)).toBe(401));
});

test('a person whose provider cannot be asked stays signed in for the configured time, and keys stay', async () => {
  const visitor = await signIn('cat', ['staff']);
  const key = await makeKey(visitor);
  company.away = true;
  ahead += 60 * MINUTE;
  await soon(async () => expect(gateway.logs.join('\n')).toContain('provider of the company'));
  expect(await session(visitor)).toBe(200);
  // What needs a proof needs a fresh sign-in.
  expect((await visitor.ask('POST', '/api/v1/keys', { label: 'late' }, ACME)).status).toBe(401);
  ahead += 8 * 60 * MINUTE;
  await soon(async () => expect(await session(visitor)).toBe(401));
  expect(await statusOf(key)).toBe(200);
  company.away = false;
});

test('nobody vouches for a person for 30 days: memberships, keys and programs go', async () => {
  const visitor = await signIn('old', ['staff']);
  const credentials = await credentialsOf(visitor);
  const { 'token of a program': _token, ...keys } = credentials;
  company.away = true;
  ahead += 30 * 24 * 60 * MINUTE;
  await soon(async () => expect(await session(visitor)).toBe(401));
  expect(await statuses(keys)).toEqual(all(keys, 200));
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statuses(credentials)).toEqual(all(credentials, 401)));
  company.away = false;
  expect(await gateway.faults()).toEqual([]);
});
