import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { freshDatabase, type FreshDatabase } from '../../../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { peopleToml } from './company.ts';
import { type Keycloak, lacksKeycloak, startKeycloak } from './keycloak.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';

// The people of a Keycloak, at three gateways of one PostgreSQL. The everyday tests use another provider.

const RULES = `
[[people.groups]]
group = "staff"
organisation = "acme"
budget = 1

[[people.groups]]
group = "leads"
organisation = "acme"
role = "admin"

[[people.groups]]
group = "ops"
admin = ["read"]
`;
const MINUTE = 60_000;
const ACME = { 'x-tollgate-account': 'tollgate:local:acme' };
const SETUP_MS = 900_000;

const lacks = lacksKeycloak();
let keycloak: Keycloak;
let database: FreshDatabase;
let gateways: readonly Spine[] = [];
let ahead = 0;
beforeAll(async () => {
  if (lacks !== null) return;
  database = await freshDatabase(inject('postgresUrl'));
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  keycloak = await startKeycloak(origin, ['staff', 'leads', 'ops']);
  const toml = `[server]\npublic_url = "${origin}"\n${UNHURRIED}${peopleToml(keycloak.issuer, RULES)}`;
  const options = { databaseUrl: database.url, toml, now: () => Date.now() + ahead };
  const elapsed = () => performance.now();
  const one = await startSpine({ ...options, elapsed, port });
  const others = await Promise.all(
    [1, 2].map(() => startSpine({ ...options, elapsed, credit: '0', provider: one.provider })),
  );
  gateways = [one, ...others];
  await one.app.ledger.transfer({
    id: 'credit-acme',
    from: 'treasury:operator',
    to: 'escrow:tollgate:local:acme',
    amount: 1_000_000n,
    memo: '',
  });
}, SETUP_MS);
afterAll(async () => {
  for (const gateway of gateways.toReversed()) await gateway.stop();
  if (lacks !== null) return;
  await keycloak.stop();
  await database.drop();
});

const one = () => gateways[0]!;
/** Signs in at the first gateway; the browser goes on at any. */
async function signIn(name: string): Promise<{ readonly visitor: Visitor; readonly result: string | null }> {
  const visitor = openVisitor(one().origin);
  const form = (await visitor.step(one().origin + START))!;
  const answer = await keycloak.signIn(visitor, form.href, name);
  const page = await visitor.go(answer.href);
  return { visitor, result: page.searchParams.get('people') };
}
async function signedIn(name: string, groups: readonly string[]): Promise<Visitor> {
  await keycloak.addPerson(name, groups);
  const { visitor, result } = await signIn(name);
  expect(result).toBe('done');
  return visitor;
}
const makeKey = async (visitor: Visitor): Promise<string> => {
  const made = await visitor.ask('POST', '/api/v1/keys', { label: 'mine' }, ACME);
  expect(made.status, await made.clone().text()).toBe(201);
  return ((await made.json()) as { readonly key: string }).key;
};
const everywhere = async (status: (gateway: Spine) => Promise<Response>) =>
  Promise.all(gateways.map(async (gateway) => (await status(gateway)).status));
const ofKey = (key: string) => everywhere(({ get }) => get('/credits', { authorization: `Bearer ${key}` }));
const soon = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 60_000, interval: 200 });
const LONG = { timeout: 180_000 };

beforeEach(({ skip }) => {
  if (lacks !== null) skip(`Keycloak cannot run here: ${lacks}`);
});

// First, because the clock of Keycloak does not go ahead with that of the gateways.
test('groups become roles, memberships and rights, and the organisation pays within the budget', LONG, async () => {
  const visitor = await signedIn('ann', ['staff', 'leads', 'ops']);
  const organisations = await visitor.ask('GET', '/api/v1/organisations');
  expect(await organisations.json()).toMatchObject({ data: [{ account: 'tollgate:local:acme', role: 'admin' }] });
  expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(200);
  expect((await visitor.ask('POST', '/admin/v1/accounts', { name: 'by-ann' })).status).toBe(403);
  const key = await makeKey(visitor);
  expect(await ofKey(key)).toEqual([200, 200, 200]);
  const calls = gateways.map(({ post }) => post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` }));
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('somebody without a group of the rules has no access', LONG, async () => {
  await keycloak.addPerson('eve', []);
  expect((await signIn('eve')).result).toBe('no_access');
});

// Keycloak gives the gateway a session of its own ("offline"), which a sign-out of the person elsewhere does not end.
test('back-channel logout ends sessions, and then keys at all gateways, because the token is void', LONG, async () => {
  const visitor = await signedIn('bob', ['staff']);
  const key = await makeKey(visitor);
  await keycloak.endSession('bob');
  await soon(async () => expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(401));
  await soon(async () => expect(await ofKey(key)).toEqual([401, 401, 401]));
  // The person is not locked out.
  expect((await signIn('bob')).result).toBe('done');
});

test('a sign-out everywhere ends sessions and keys at the next refresh', LONG, async () => {
  const visitor = await signedIn('gil', ['staff']);
  const key = await makeKey(visitor);
  // Keycloak counts in whole seconds: a token of the same second would stay good.
  const signedInAt = Math.floor(Date.now() / 1_000);
  await vi.waitUntil(() => Math.floor(Date.now() / 1_000) > signedInAt);
  await keycloak.signOut('gil');
  ahead += 11 * MINUTE;
  await soon(async () => expect(await ofKey(key)).toEqual([401, 401, 401]));
  await soon(async () => expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(401));
});

test('a removed group takes the membership and its keys, and the person stays signed in', LONG, async () => {
  const visitor = await signedIn('cat', ['staff', 'ops']);
  const key = await makeKey(visitor);
  await keycloak.leaveGroup('cat', 'staff');
  ahead += 11 * MINUTE;
  await soon(async () => expect(await ofKey(key)).toEqual([401, 401, 401]));
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
  expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(200);
  await keycloak.leaveGroup('cat', 'ops');
  ahead += 11 * MINUTE;
  await soon(async () => expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(401));
});

test('a disabled and a deleted person lose sessions and keys at all gateways', LONG, async () => {
  const people = [await signedIn('dan', ['staff']), await signedIn('del', ['staff'])];
  const keys = await Promise.all(people.map(makeKey));
  await keycloak.disable('dan');
  await keycloak.delete('del');
  ahead += 11 * MINUTE;
  for (const key of keys) await soon(async () => expect(await ofKey(key)).toEqual([401, 401, 401]));
  for (const visitor of people)
    await soon(async () => expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(401));
});

test('a gateway that is away is replaced by another one, which follows the people', LONG, async () => {
  const visitor = await signedIn('fay', ['staff']);
  const key = await makeKey(visitor);
  await gateways[2]!.stop();
  gateways = gateways.slice(0, 2);
  await keycloak.delete('fay');
  ahead += 11 * MINUTE;
  await soon(async () => expect(await ofKey(key)).toEqual([401, 401]));
  expect(await one().faults()).toEqual([]);
});
