import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { freshDatabase, type FreshDatabase } from '../../../support/fresh-database.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
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
