import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freshDatabase, type FreshDatabase } from '../../../support/fresh-database.ts';
import { startSpine, type Spine } from '../../../support/spine.ts';
import { openBrowser } from './browser.ts';

// One session at two gateways of a database, behind one name.

let database: FreshDatabase;
let one: Spine;
let two: Spine;
let at = Date.parse('2026-03-02T08:00:00Z');
const now = () => at;
beforeAll(async () => {
  database = await freshDatabase(inject('postgresUrl'));
  one = await startSpine({ databaseUrl: database.url, now });
  two = await startSpine({ databaseUrl: database.url, now, credit: '0', provider: one.provider });
});
afterAll(async () => {
  await two.stop();
  await one.stop();
  await database.drop();
});

test('a session is good on both, and over on the other within 5 seconds', async () => {
  const here = openBrowser(one.origin);
  await here.ask('POST', '/api/v1/auth/session', { api_key: one.key });
  const there = openBrowser(two.origin, new URL(one.origin).host);
  there.cookie = here.cookie;
  const { cookie } = here;
  expect((await there.ask('GET', '/api/v1/keys')).status).toBe(200);
  expect((await here.ask('DELETE', '/api/v1/auth/session')).body).toEqual({ ended: 1 });
  expect((await here.ask('GET', '/api/v1/keys', undefined, { cookie: cookie! })).status).toBe(401);
  at += 5_000;
  expect((await there.ask('GET', '/api/v1/keys')).status).toBe(401);
});

test('the use of a session at one gateway keeps it alive at the other', async () => {
  const here = openBrowser(one.origin);
  await here.ask('POST', '/api/v1/auth/session', { api_key: one.key });
  const there = openBrowser(two.origin, new URL(one.origin).host);
  there.cookie = here.cookie;
  for (let hours = 0; hours < 30; hours += 10) {
    at += 10 * 3_600_000;
    expect((await (hours % 20 === 0 ? here : there).ask('GET', '/api/v1/keys')).status).toBe(200);
  }
});
