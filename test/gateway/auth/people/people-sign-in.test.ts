import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { adHoc } from '../../../support/ad-hoc.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { type Company, peopleToml, startCompany } from './company.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';

// The company's people sign in at a real provider, and spend the money of an organisation.

const RULES = `
[[people.groups]]
group = "staff"
organisation = "acme"
role = "member"
budget = 0.001

[[people.groups]]
group = "leads"
organisation = "acme"
role = "admin"

[[people.groups]]
group = "ops"
admin = ["read", "credit"]
`;

let company: Company;
let gateway: Spine;
beforeAll(async () => {
  const port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  company = await startCompany(origin);
  const toml = `[server]\npublic_url = "${origin}"\n${UNHURRIED}${peopleToml(company.issuer, RULES)}`;
  gateway = await startSpine({ port, toml });
});
afterAll(async () => {
  await gateway.stop();
  await company.stop();
});
beforeEach(() => {
  company.groups.set('ann', ['staff']);
  company.groups.set('lea', ['staff', 'leads']);
  company.groups.set('oli', ['ops']);
  company.groups.set('eve', ['visitors']);
  company.away = false;
});

const signIn = async (person: string, to = '/dashboard') => {
  company.person = person;
  const visitor = openVisitor(gateway.origin);
  const page = await visitor.go(`${gateway.origin}${START}?to=${encodeURIComponent(to)}`);
  return { visitor, page };
};
const body = async <T = Record<string, never>>(response: Promise<Response>) => (await (await response).json()) as T;
interface Session {
  readonly account: string;
  readonly signed_in_by: string;
  readonly rights: string;
  readonly step_up: string | null;
}

test('a person gets an account, a session and the membership that the group gives', async () => {
  const { visitor, page } = await signIn('ann', '/dashboard/keys?all=1');
  expect(page.pathname).toBe('/sign-in');
  expect(Object.fromEntries(page.searchParams)).toEqual({ people: 'done', next: '/dashboard/keys?all=1' });
  const session = await body<Session>(visitor.ask('GET', '/api/v1/auth/session'));
  expect(session).toMatchObject({ signed_in_by: 'person', rights: 'full', step_up: null });
  expect(session.account).toMatch(/^oauth:.*:ann$/);
  const { data } = await body<{ data: { account: string; role: string }[] }>(
    visitor.ask('GET', '/api/v1/organisations'),
  );
  expect(data).toMatchObject([{ account: 'tollgate:local:acme', role: 'member' }]);
  // The email is not the identity: everybody has the same here.
  const other = await signIn('lea');
  expect((await body<Session>(other.visitor.ask('GET', '/api/v1/auth/session'))).account).not.toBe(session.account);
});

test('of several groups the highest role and budget count', async () => {
  const { visitor } = await signIn('lea');
  const { data } = await body<{ data: { role: string }[] }>(visitor.ask('GET', '/api/v1/organisations'));
  expect(data).toMatchObject([{ role: 'admin' }]);
});

test('whom somebody made an owner stays one', async () => {
  const { visitor } = await signIn('lea');
  const { account } = await body<Session>(visitor.ask('GET', '/api/v1/auth/session'));
  const acme = 'tollgate:local:acme';
  // The last owner of an account stays one in any case.
  for (const made of [
    `INSERT INTO members VALUES ('${acme}', 'tollgate:local:founder', 'owner', 'Founder', 0)`,
    `UPDATE members SET role = 'owner' WHERE account = '${acme}' AND member = '${account}'`,
  ])
    await gateway.app.database.query(adHoc(made));
  const again = await signIn('lea');
  const { data } = await body<{ data: { role: string }[] }>(again.visitor.ask('GET', '/api/v1/organisations'));
  expect(data).toMatchObject([{ role: 'owner' }]);
});

test('a key of the membership spends the money of the organisation within the budget of the person', async () => {
  await gateway.app.ledger.transfer({
    id: 'credit-acme',
    from: 'treasury:operator',
    to: 'escrow:tollgate:local:acme',
    amount: 1_000_000n,
    memo: '',
  });
  const { visitor } = await signIn('ann');
  const made = await visitor.ask(
    'POST',
    '/api/v1/keys',
    { label: 'mine' },
    { 'x-tollgate-account': 'tollgate:local:acme' },
  );
  expect(made.status).toBe(201);
  const { key } = (await made.json()) as { readonly key: string };
  const call = () => gateway.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` });
  expect((await call()).status).toBe(200);
  const refused = await gateway.post('/chat/completions', ask('hello', { max_tokens: 4_000 }), {
    authorization: `Bearer ${key}`,
  });
  expect(refused.status).toBe(402);
  expect(await gateway.faults()).toEqual([]);
});

test('a group without a rule gives no access, and no row', async () => {
  const { visitor, page } = await signIn('eve');
  expect(Object.fromEntries(page.searchParams)).toEqual({ people: 'no_access' });
  expect(await body(visitor.ask('GET', '/api/v1/auth/session'))).toMatchObject({ account: null });
});

test('an administrator reads and changes what the rights cover, and nothing else', async () => {
  const { visitor } = await signIn('oli');
  expect((await visitor.ask('GET', '/admin/v1/accounts')).status).toBe(200);
  expect((await visitor.ask('POST', '/admin/v1/accounts', { name: 'by-oli' })).status).toBe(201);
  expect((await visitor.ask('POST', '/admin/v1/reload')).status).toBe(403);
  // A session of an admin key begins with the key, not with the session of a person.
  expect((await visitor.ask('POST', '/admin/v1/session')).status).toBe(401);
  const { visitor: ann } = await signIn('ann');
  expect((await ann.ask('GET', '/admin/v1/accounts')).status).toBe(401);
});

test.each([
  ['https://evil.example/', '/dashboard'],
  ['//evil.example/', '/dashboard'],
  ['/\\evil.example', '/dashboard'],
  ['/\t/evil.example', '/dashboard'],
  ['javascript:alert(1)', '/dashboard'],
  ['/playground', '/playground'],
])('after the sign-in %j leads to %s', async (to, next) => {
  const { page } = await signIn('ann', to);
  expect(page.searchParams.get('next')).toBe(next);
});

test('an answer is good in the browser that began, and once', async () => {
  company.person = 'ann';
  const one = openVisitor(gateway.origin);
  let at = new URL(`${gateway.origin}${START}`);
  for (;;) {
    const next = await one.step(at.href);
    if (next?.pathname === '/api/v1/auth/people/callback') {
      at = next;
      break;
    }
    at = next!;
  }
  // Login CSRF: another browser gets nothing of it.
  const other = openVisitor(gateway.origin);
  await other.step(`${gateway.origin}${START}`);
  const refused = await other.step(at.href);
  expect(refused!.searchParams.get('people')).toBe('over');
  expect((await openVisitor(gateway.origin).step(at.href))!.searchParams.get('people')).toBe('over');
  const kept = new Map(one.cookies(gateway.origin));
  expect((await one.step(at.href))!.searchParams.get('people')).toBe('done');
  // The same answer once more, with the cookie of before.
  const again = openVisitor(gateway.origin);
  for (const [name, value] of kept) again.cookies(gateway.origin).set(name, value);
  expect((await again.step(at.href))!.searchParams.get('people')).toBe('over');
});

/** Begins a sign-in and stops before its answer. */
const begun = async (visitor: Visitor, to = '/dashboard'): Promise<string> => {
  for (let at = `${gateway.origin}${START}?to=${encodeURIComponent(to)}`; ;) {
    at = (await visitor.step(at))!.href;
    if (new URL(at).pathname === '/api/v1/auth/people/callback') return at;
  }
};

test('several tabs of a browser sign in at once, in any order, as far as a cookie has room', async () => {
  company.person = 'ann';
  const visitor = openVisitor(gateway.origin);
  const long = `/playground?${'x'.repeat(900)}`;
  const answers = [await begun(visitor, long)];
  for (let tab = 1; tab < 6; tab += 1) answers.push(await begun(visitor));
  const waiting = () => [...visitor.cookies(gateway.origin)].find(([name]) => name.startsWith('tollgate-people'));
  expect(waiting()!.join('=').length).toBeLessThan(4_000);
  const outcome = async (at: string) => (await visitor.step(at))!.searchParams.get('people');
  // What this browser did not begin ends nothing.
  expect(await outcome(`${gateway.origin}/api/v1/auth/people/callback?code=c&state=x`)).toBe('over');
  const ends = [];
  for (const at of [3, 1, 5, 2, 4, 0]) ends.push(await outcome(answers[at]!));
  expect(ends).toEqual(Array(6).fill('done'));
  expect(waiting()).toBeUndefined();
  const [oldest] = [await begun(visitor, long), await begun(visitor, long), await begun(visitor, long)];
  expect(waiting()!.join('=').length).toBeLessThan(4_000);
  expect(await outcome(oldest)).toBe('over');
});

test('another site does not begin a sign-in', async () => {
  const next = await openVisitor(gateway.origin).step(`${gateway.origin}${START}`, { 'sec-fetch-site': 'cross-site' });
  expect(next!.pathname).toBe('/sign-in');
});

test('the answer of another issuer is refused', async () => {
  company.person = 'ann';
  const visitor = openVisitor(gateway.origin);
  let at = new URL(`${gateway.origin}${START}`);
  while (at.pathname !== '/api/v1/auth/people/callback') at = (await visitor.step(at.href))!;
  expect(at.searchParams.get('iss')).toBe(company.issuer);
  at.searchParams.set('iss', 'https://evil.example');
  expect((await visitor.step(at.href))!.searchParams.get('people')).toBe('refused');
});

test('the list of sessions says when and where each began, without a whole address', async () => {
  const { visitor } = await signIn('ann');
  const { data } = await body<{ data: { network: string; signed_in_by: string }[] }>(
    visitor.ask('GET', '/api/v1/auth/sessions'),
  );
  expect(data[0]).toMatchObject({ network: '127.0.0.0/24', signed_in_by: 'person', current: true });
});
