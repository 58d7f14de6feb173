import type { JWTPayload } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { command, freshDatabase, type FreshDatabase } from '../../../support/fresh-database.ts';
import { findFreePort } from '../../../support/free-port.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { peopleToml } from './company.ts';
import { type Forger, startForger } from './forger.ts';
import { openVisitor, START, type Visitor } from './visitor.ts';

// Attacks on the sign-in of a company's people: by other sites and browsers, by claims, by people themselves, and by
// forged logout tokens. The files beside this one have what each part refuses by itself.

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
admin = ["read", "credit", "configure"]

[[people.groups]]
group = "café"
organisation = "cafe"
`;
const ACME = { 'x-tollgate-account': 'tollgate:local:acme' };
const MINUTE = 60_000;
const LONG = { timeout: 180_000 };

let forger: Forger;
let database: FreshDatabase;
let gateway: Spine;
let ahead = 0;
beforeAll(async () => {
  forger = await startForger();
  database = await freshDatabase(inject('postgresUrl'));
  const port = await findFreePort();
  const toml = `[server]\npublic_url = "http://127.0.0.1:${port}"\n[sign_in]\nfailures_per_minute = 100000\n${UNHURRIED}${peopleToml(forger.issuer, RULES)}`;
  gateway = await startSpine({
    port,
    toml,
    databaseUrl: database.url,
    now: () => Date.now() + ahead,
    elapsed: () => performance.now(),
  });
  await gateway.app.ledger.transfer({
    id: 'credit-acme',
    from: 'treasury:operator',
    to: 'escrow:tollgate:local:acme',
    amount: 1_000_000n,
    memo: '',
  });
});
beforeEach(() => {
  Object.assign(forger, { changes: {}, userinfo: null, refresh: null, signer: forger.good });
});
afterEach(async () => {
  expect(await gateway.faults()).toEqual([]);
});
afterAll(async () => {
  await gateway.stop();
  await forger.stop();
  await database.drop();
});

const signIn = async (changes: JWTPayload = {}) => {
  forger.changes = changes;
  return forger.signIn(gateway.origin);
};
const signedIn = async (changes: JWTPayload = {}): Promise<Visitor> => {
  const { visitor, outcome } = await signIn(changes);
  expect(outcome).toBe('done');
  return visitor;
};
const accountOf = async (visitor: Visitor) =>
  ((await (await visitor.ask('GET', '/api/v1/auth/session')).json()) as { readonly account: string | null }).account;
const isSignedIn = async (visitor: Visitor) => (await visitor.ask('GET', '/api/v1/keys')).status === 200;
const rolesOf = async (visitor: Visitor) => {
  const answer = await visitor.ask('GET', '/api/v1/organisations');
  if (answer.status !== 200) return null;
  const { data } = (await answer.json()) as { readonly data: readonly { account: string; role: string }[] };
  return data.map(({ account, role }) => `${account.split(':').at(-1)} ${role}`).toSorted();
};
const makeKey = async (visitor: Visitor, headers: Readonly<Record<string, string>> = ACME) => {
  const made = await visitor.ask('POST', '/api/v1/keys', { label: 'mine' }, headers);
  return made.status === 201 ? ((await made.json()) as { readonly key: string }).key : null;
};
const statusOf = async (key: string) => (await gateway.get('/credits', { authorization: `Bearer ${key}` })).status;
const callback = (state: string | null) =>
  `${gateway.origin}/api/v1/auth/people/callback?code=c&iss=${encodeURIComponent(forger.issuer)}&state=${state}`;

describe('sessions that somebody else has begun', () => {
  test('a cookie that was planted before the sign-in is not that of the session', async () => {
    const thief = await signedIn({ sub: 'thief' });
    const victim = openVisitor(gateway.origin);
    const planted = [...thief.cookies(gateway.origin)].find(([name]) => /^tollgate-(?!people)/.test(name))!;
    victim.cookies(gateway.origin).set(...planted);
    forger.changes = { sub: 'victim' };
    const asked = (await victim.step(gateway.origin + START))!;
    forger.changes = { sub: 'victim', nonce: asked.searchParams.get('nonce')! };
    await victim.step(callback(asked.searchParams.get('state')));
    expect(await accountOf(victim)).toMatch(/:victim$/);
    expect(victim.cookies(gateway.origin).get(planted[0])).not.toBe(planted[1]);
    // The thief is out, and has nothing of the victim's.
    expect(await isSignedIn(thief)).toBe(false);
  });

  test("the answer to a thief's sign-in in the victim's browser signs nobody in, and ends nothing", async () => {
    const thief = openVisitor(gateway.origin);
    const begun = (await thief.step(gateway.origin + START))!;
    const state = begun.searchParams.get('state');
    const victim = await signedIn({ sub: 'victim' });
    // Without a sign-in under way, and with one.
    for (const begins of [false, true]) {
      if (begins) await victim.step(gateway.origin + START);
      forger.changes = { sub: 'thief', nonce: begun.searchParams.get('nonce')! };
      const page = await victim.step(callback(state));
      expect(page!.searchParams.get('people')).toBe('over');
      expect(await accountOf(victim)).toMatch(/:victim$/);
    }
  });

  test('two cookies of a sign-in under way, of which one was planted', async () => {
    const [thief, victim] = [openVisitor(gateway.origin), openVisitor(gateway.origin)];
    const asked = (await thief.step(gateway.origin + START))!;
    await victim.step(gateway.origin + START);
    const cookies = [thief, victim].map((one) =>
      [...one.cookies(gateway.origin)].map((pair) => pair.join('=')).join('; '),
    );
    forger.changes = { sub: 'thief', nonce: asked.searchParams.get('nonce')! };
    const answer = await fetch(callback(asked.searchParams.get('state')), {
      redirect: 'manual',
      headers: { cookie: cookies.join('; ') },
    });
    expect(answer.headers.get('location')).toContain('people=over');
  });

  test('the cookie of a sign-in that began more than ten minutes ago', async () => {
    for (const [minutes, says] of [
      [9, 'done'],
      [11, 'over'],
    ] as const) {
      const visitor = openVisitor(gateway.origin);
      const asked = (await visitor.step(gateway.origin + START))!;
      forger.changes = { sub: 'slow', nonce: asked.searchParams.get('nonce')! };
      const cookie = [...visitor.cookies(gateway.origin)].map((pair) => pair.join('=')).join('; ');
      ahead += minutes * MINUTE;
      // A browser has forgotten it by then. Somebody else may have kept it.
      const answer = await fetch(callback(asked.searchParams.get('state')), {
        redirect: 'manual',
        headers: { cookie },
      });
      ahead -= minutes * MINUTE;
      const to = new URL(answer.headers.get('location')!, gateway.origin);
      expect(to.searchParams.get('people')).toBe(says);
    }
  });

  test.each([
    '//evil.example/x',
    '/\\evil.example',
    '\\\\evil.example',
    '/.//evil.example',
    '/..//evil.example',
    '/\t/evil.example',
    'https:evil.example',
    'javascript:alert(1)',
    'http://own.invalid@evil.example/',
  ])('a sign-in does not lead to %j', async (to) => {
    const visitor = openVisitor(gateway.origin);
    const asked = (await visitor.step(`${gateway.origin}${START}?to=${encodeURIComponent(to)}`))!;
    forger.changes = { nonce: asked.searchParams.get('nonce')! };
    const page = (await visitor.step(callback(asked.searchParams.get('state'))))!;
    expect(page.origin).toBe(gateway.origin);
    expect(new URL(page.searchParams.get('next')!, gateway.origin).origin).toBe(gateway.origin);
  });
});

describe('claims', () => {
  test.each<readonly [string, unknown]>([
    ['another case', ['Staff', 'OPS']],
    ['blanks', [' staff', 'ops ', 'staff\n']],
    ['a path', ['/staff', 'acme/staff', 'staff/']],
    ['a list in a text', '["staff","ops"]'],
    ['a list with commas', 'staff,ops'],
    ['a list with blanks', 'staff ops'],
    ['a list in a list', [['staff'], ['ops']]],
    ['an object', { staff: true, ops: true, 0: 'staff', length: 1 }],
    ['objects', [{ name: 'ops' }, { value: 'staff', toString: 'ops' }]],
    ['true', true],
    ['letters that look alike', ['st\u0430ff', 'op\u0455', 'staff\u200b']],
    ['another form of Unicode', ['cafe\u0301']],
    ['names of every object', ['__proto__', 'constructor', 'toString', '']],
    ['null', null],
  ])('groups as %s give nothing', async (_what, groups) => {
    const { visitor, outcome } = await signIn({ sub: 'spoofer', groups });
    expect(outcome).toBe('no_access');
    expect(await accountOf(visitor)).toBeNull();
  });

  test('groups in another claim give nothing', async () => {
    forger.userinfo = { sub: 'spoofer', Groups: ['ops'], roles: ['ops'] };
    const others = {
      Groups: ['ops'],
      group: ['ops'],
      roles: ['ops'],
      realm_access: { roles: ['ops'] },
      'groups ': ['ops'],
    };
    expect((await signIn({ sub: 'spoofer', groups: undefined, ...others })).outcome).toBe('no_access');
    expect((await signIn({ sub: 'spoofer', groups: [], ...others })).outcome).toBe('no_access');
  });

  test('the userinfo of another person is not believed', async () => {
    forger.userinfo = { sub: 'boss', groups: ['ops'] };
    expect((await signIn({ sub: 'spoofer', groups: undefined })).outcome).toBe('refused');
    forger.userinfo = { sub: 'spoofer', groups: ['staff'] };
    expect(await rolesOf(await signedIn({ sub: 'spoofer', groups: undefined }))).toEqual(['acme member']);
  });

  test('the same name or email is not the same person', async () => {
    const boss = await signedIn({ sub: 'boss', email: 'boss@acme.example', groups: ['leads'] });
    const accounts = [await accountOf(boss)];
    for (const sub of ['BOSS', 'boss ', 'b\u043ess', 'bo\u0073\u0301s', 'oauth:x:boss', 'boss:x', 'a'.repeat(300)]) {
      const visitor = await signedIn({ sub, name: 'boss', email: 'boss@acme.example', preferred_username: 'boss' });
      expect([sub, await rolesOf(visitor)]).toEqual([sub, ['acme member']]);
      accounts.push(await accountOf(visitor));
    }
    expect(new Set(accounts).size).toBe(accounts.length);
  });

  test.each([
    ['a subject that is no text', { sub: '\ud800' }],
    ['a subject with a character that no database takes', { sub: 'a\u0000b' }],
    ['a subject with a character that nobody sees', { sub: 'boss\u200b' }],
    ['an empty subject', { sub: '' }],
    ['a subject without an end', { sub: 'a'.repeat(10_000) }],
  ])('%s is refused, and not an internal error', async (_what, changes) => {
    expect((await signIn(changes)).outcome).toBe('refused');
  });

  test('a name cannot hide, turn or flood the lists that it stands in', async () => {
    const name = `Ann\u0000\u202enimda\u200b\n(verified)${'!'.repeat(5_000)}`;
    const visitor = await signedIn({ sub: 'liar', name, sid: 'a\u0000b' });
    const { data } = (await (await visitor.ask('GET', '/api/v1/members', undefined, ACME)).json()) as {
      readonly data: readonly { readonly account: string; readonly name: string }[];
    };
    const listed = data.find(({ account }) => account.endsWith(':liar'))!.name;
    expect(listed).not.toMatch(/\p{C}/u);
    expect(listed.length).toBeLessThanOrEqual(100);
    expect(listed).toMatch(/^Ann/);
  });
});

describe('people who are to be removed', () => {
  const soon = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 60_000, interval: 100 });

  test.each([
    ['the organisation', ACME],
    ["the person's own account", {}],
  ])('keys of %s that a person makes while being removed do not work later', LONG, async (_whose, headers) => {
    const visitor = await signedIn({ sub: `racing-${Object.keys(headers).length}` });
    forger.refresh = () => ({ error: 'invalid_grant' });
    const keys: (string | null)[] = [];
    ahead += 11 * MINUTE;
    let away = false;
    const race = async () => {
      while (!away) keys.push(...(await Promise.all([makeKey(visitor, headers), makeKey(visitor, headers)])));
    };
    await Promise.all([
      race(),
      race(),
      soon(async () => expect(await isSignedIn(visitor)).toBe(false)).finally(() => (away = true)),
    ]);
    const made = keys.filter((key) => key !== null);
    expect(made.length).toBeGreaterThan(0);
    await soon(async () =>
      expect((await Promise.all(made.map(statusOf))).filter((status) => status !== 401)).toEqual([]),
    );
  });

  test('the playground, and calls of the browser, end with the membership', LONG, async () => {
    const visitor = await signedIn({ sub: 'player' });
    const play = async () => (await visitor.ask('POST', '/api/v1/chat/completions', ask('hello'), ACME)).status;
    expect(await play()).toBe(200);
    forger.refresh = () => ({ error: 'invalid_grant' });
    ahead += 11 * MINUTE;
    await soon(async () => expect(await play()).toBe(401));
    forger.refresh = null;
    // Back in the company, but not in the group.
    expect((await signIn({ sub: 'player', groups: ['ops'] })).outcome).toBe('done');
    const again = (await signIn({ sub: 'player', groups: ['ops'] })).visitor;
    expect((await again.ask('POST', '/api/v1/chat/completions', ask('hello'), ACME)).status).toBe(404);
  });
});

describe('a decision about a call', () => {
  test('needs a sign-in of the last 15 minutes, and the page of the gateway', async () => {
    const staff = await signedIn({ sub: 'asker' });
    const key = (await makeKey(staff))!;
    const { data } = (await (await staff.ask('GET', '/api/v1/keys', undefined, ACME)).json()) as {
      readonly data: readonly { readonly hash: string; readonly name: string }[];
    };
    const lead = await signedIn({ sub: 'lead', groups: ['leads'] });
    const changed = await lead.ask('PATCH', `/api/v1/keys/${data.at(-1)!.hash}`, { ask_above: 0 }, ACME);
    expect(changed.status, await changed.clone().text()).toBe(200);
    const call = () => gateway.post('/chat/completions', ask('hello'), { authorization: `Bearer ${key}` });
    let id = '';
    await vi.waitFor(async () => {
      id = ((await (await call()).json()) as { approval: { id: string } }).approval.id;
    }, 10_000);
    const accept = async (visitor: Visitor, headers: Readonly<Record<string, string>> = {}) =>
      (await visitor.ask('POST', `/api/v1/approvals/${id}`, { decision: 'accept' }, { ...ACME, ...headers })).status;
    // A member may not, another site may not, and neither may whoever took a cookie that is older.
    expect(await accept(staff)).toBe(403);
    expect(await accept(lead, { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })).toBe(403);
    expect(await accept(lead, { 'x-tollgate-web': '' })).toBe(403);
    const old = await signedIn({ sub: 'old lead', groups: ['leads'] });
    ahead += 16 * MINUTE;
    expect(await accept(old)).toBe(401);
    expect((await call()).status).toBe(403);
  });
});

// Last, because the clock goes ahead by a month.
test(
  'nobody vouches for people for 30 days: one at whom the gateway stumbles does not keep the others in',
  LONG,
  async () => {
    const keys: string[] = [];
    for (const sub of ['aa stumbling', 'zz leaving']) keys.push((await makeKey(await signedIn({ sub })))!);
    await command(
      database.url,
      `CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stumbled'; END $$;
    CREATE TRIGGER stumble BEFORE DELETE ON people FOR EACH ROW WHEN (OLD.account LIKE '%stumbling') EXECUTE FUNCTION stumble()`,
    );
    forger.refresh = () => ({ error: 'server_error' });
    ahead += 31 * 24 * 60 * MINUTE;
    await vi.waitFor(async () => expect(await Promise.all(keys.map(statusOf))).toEqual([401, 401]), {
      timeout: 60_000,
      interval: 100,
    });
    await command(database.url, 'DROP TRIGGER stumble ON people; DROP FUNCTION stumble');
  },
);
