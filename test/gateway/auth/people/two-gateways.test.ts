import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import { findFreePort } from '../../../support/free-port.ts';
import { freshDatabase, type FreshDatabase } from '../../../support/fresh-database.ts';
import { ask, startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { type Company, peopleToml, startCompany } from './company.ts';
import { openVisitor, START } from './visitor.ts';

// A sign-in that begins at one gateway and ends at another of the database, or after a restart.

const RULES = '[[people.groups]]\ngroup = "staff"\norganisation = "acme"\n';
let database: FreshDatabase;
let company: Company;
let one: Spine;
let two: Spine;
let toml: string;
let port: number;
beforeAll(async () => {
  database = await freshDatabase(inject('postgresUrl'));
  port = await findFreePort();
  const origin = `http://127.0.0.1:${port}`;
  company = await startCompany(origin);
  company.groups.set('ann', ['staff']);
  toml = `[server]\npublic_url = "${origin}"\n${UNHURRIED}${peopleToml(company.issuer, RULES)}`;
  one = await startSpine({ databaseUrl: database.url, port, toml });
  two = await startSpine({ databaseUrl: database.url, toml, credit: '0', provider: one.provider });
});
afterAll(async () => {
  await two.stop();
  await one.stop();
  await company.stop();
  await database.drop();
});

/** Goes to the provider, and stops at the address that it sends the browser back to. */
async function untilAnswer(visitor: ReturnType<typeof openVisitor>): Promise<URL> {
  let at = new URL(one.origin + START);
  while (at.pathname !== '/api/v1/auth/people/callback') at = (await visitor.step(at.href))!;
  return at;
}

test('the other gateway ends it, and one of two that answer at the same time', async () => {
  const visitor = openVisitor(one.origin);
  const answer = await untilAnswer(visitor);
  const there = two.origin + answer.pathname + answer.search;
  const jar = visitor.cookies(one.origin);
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const ask = async (url: string) => {
    const { headers } = await fetch(url, { redirect: 'manual', headers: { cookie } });
    return new URL(headers.get('location')!, url).searchParams.get('people');
  };
  expect([await ask(there), await ask(answer.href)]).toEqual(['done', 'over']);
});

test('a restart in between does no harm', async () => {
  const visitor = openVisitor(one.origin);
  const answer = await untilAnswer(visitor);
  await one.app.close();
  one = { ...(await startSpine({ databaseUrl: database.url, port, toml, credit: '0', provider: one.provider })) };
  expect((await visitor.step(answer.href))!.searchParams.get('people')).toBe('done');
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
});

test('calls at both gateways have one key of the playground, so a repeat at the other one is not paid again', async () => {
  const visitor = openVisitor(one.origin);
  expect((await visitor.go(one.origin + START)).searchParams.get('people')).toBe('done');
  const account = 'tollgate:local:acme';
  await one.app.ledger.transfer({
    id: 'fund-acme',
    from: treasuryOf('operator'),
    to: escrowOf(account),
    amount: 1_000_000n,
    memo: '',
  });
  const cookie = visitor.cookies(one.origin).get(`tollgate-${port}`)!;
  const call = async (at: Spine, once: string) => {
    const response = await fetch(`${at.url}/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-tollgate-account': account,
        'x-tollgate-web': '1',
        'idempotency-key': once,
        // Without a balancer in front, each port of this machine has a cookie of its own.
        cookie: `tollgate-${new URL(at.origin).port}=${cookie}`,
      },
      body: JSON.stringify(ask('hello !tokens:5')),
    });
    return { status: response.status, body: (await response.json()) as { id: string } };
  };
  const first = await Promise.all(['a', 'b', 'c'].flatMap((name) => [call(one, `${name}1`), call(two, `${name}2`)]));
  expect(first.map(({ status }) => status)).toEqual(first.map(() => 200));
  const listed = await visitor.ask('GET', '/api/v1/keys', undefined, { 'x-tollgate-account': account });
  const { data } = (await listed.json()) as { readonly data: readonly { readonly client: string | null }[] };
  expect(data.filter(({ client }) => client?.startsWith('the playground'))).toHaveLength(1);
  expect((await call(two, 'a1')).body).toEqual(first[0]!.body);
});

test('sign-ins of a network are bounded', async () => {
  const rate = toml.replace(UNHURRIED, '[limits]\nanonymous_requests_per_minute = 3\n');
  const slow = await startSpine({ databaseUrl: database.url, toml: rate, credit: '0', provider: one.provider });
  try {
    const seen = [];
    for (let times = 0; times < 30; times += 1) {
      const next = await openVisitor(slow.origin).step(slow.origin + START);
      seen.push(next!.searchParams.get('people'));
      if (seen.at(-1) === 'too_many') break;
    }
    expect(seen.at(-1)).toBe('too_many');
  } finally {
    await slow.app.close();
  }
});

test('a provider that does not answer leads to a page that says so', async () => {
  const visitor = openVisitor(one.origin);
  const answer = await untilAnswer(visitor);
  company.away = true;
  expect((await visitor.step(answer.href))!.searchParams.get('people')).toBe('away');
  // It has read no metadata yet.
  const fresh = await startSpine({ databaseUrl: database.url, toml, credit: '0', provider: one.provider });
  expect((await openVisitor(fresh.origin).step(fresh.origin + START))!.searchParams.get('people')).toBe('away');
  company.away = false;
  expect((await openVisitor(fresh.origin).step(fresh.origin + START))!.origin).toBe(company.issuer);
  await fresh.app.close();
});
