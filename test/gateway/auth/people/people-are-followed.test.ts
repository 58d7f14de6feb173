import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { type Company, peopleToml, startCompany } from './company.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';

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
  const toml = `[server]\npublic_url = "${origin}"\n${UNHURRIED}${peopleToml(company.issuer, RULES)}`;
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
const statusOf = async (key: string) => (await gateway.get('/credits', { authorization: `Bearer ${key}` })).status;
const session = async (visitor: Visitor) => (await visitor.ask('GET', '/api/v1/keys')).status;
const soon = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 15_000, interval: 100 });

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

test('an administrator who leaves the group loses the right at the next refresh', async () => {
  const visitor = await signIn('oli', ['ops']);
  expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(200);
  company.groups.set('oli', []);
  ahead += 11 * MINUTE;
  await soon(async () => expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(401));
});

test('a deleted person loses sessions, membership and keys at the next refresh', async () => {
  const visitor = await signIn('del', ['staff']);
  const key = await makeKey(visitor);
  company.groups.delete('del');
  ahead += 11 * MINUTE;
  await soon(async () => expect(await statusOf(key)).toBe(401));
  await soon(async () => expect(await session(visitor)).toBe(401));
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

test('nobody vouches for a person for 30 days: membership and keys go', async () => {
  const visitor = await signIn('old', ['staff']);
  const key = await makeKey(visitor);
  company.away = true;
  ahead += 31 * 24 * 60 * MINUTE;
  await soon(async () => expect(await statusOf(key)).toBe(401));
  company.away = false;
});
