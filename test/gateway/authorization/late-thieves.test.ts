import { afterAll, beforeAll, expect, test } from 'vitest';
import { adHoc } from '../../support/ad-hoc.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { A_BUDGET, createPerson, type Person } from './support/person.ts';
import { registerRaw, type RawClient } from './support/raw-client.ts';

/* What somebody stole comes again when the gateway could have forgotten that it was used. */

const DAY = 24 * 60 * 60_000;

let spine: Spine;
let person: Person;
let client: RawClient;
let ahead = 0;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development', now: () => Date.now() + ahead });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
});
afterAll(() => spine.stop());

test('a program that was away for weeks finds the thief of its refresh token, and the grant ends', async () => {
  const limits = { ...A_BUDGET, expires_at: new Date(Date.now() + 300 * DAY).toISOString() };
  const { refresh_token: stolen } = await client.signIn(person, { limits });
  let { body } = await client.refresh(stolen!);
  for (let week = 0; week < 8; week += 1) {
    ahead += 7 * DAY;
    ({ body } = await client.refresh(body.refresh_token!));
    expect(body.error).toBeUndefined();
  }
  expect(await client.refresh(stolen!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  expect(await client.refresh(body.refresh_token!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  const call = await fetch(`${spine.url}/key`, { headers: { authorization: `Bearer ${body.access_token}` } });
  expect(call.status).toBe(401);
  expect(await spine.faults()).toEqual([]);
});

const ROWS = adHoc("SELECT COUNT(*) AS n FROM authorization_state WHERE kind = 'RefreshToken'");

test.each([
  ['the last one that is kept', -32],
  ['one that was forgotten', 0],
])('of many used refresh tokens few are kept, and %s still ends the grant', async (_which, at) => {
  const limits = { ...A_BUDGET, expires_at: new Date(Date.now() + ahead + 30 * DAY).toISOString() };
  const used: string[] = [];
  let { refresh_token: next, access_token: token } = await client.signIn(person, { limits });
  for (let count = 0; count < 40; count += 1) {
    used.push(next!);
    const { status, body } = await client.refresh(next!);
    expect(status).toBe(200);
    ({ refresh_token: next, access_token: token } = body);
  }
  const [row] = await spine.app.database.query(ROWS);
  expect(Number(row!['n'])).toBeLessThanOrEqual(33);
  // A later one than those that were forgotten is good, and so is its repeat.
  for (let times = 0; times < 2; times += 1) expect((await client.refresh(next!)).status).toBe(200);
  ahead += 61_000;
  expect(await client.refresh(used.at(at)!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  const call = await fetch(`${spine.url}/key`, { headers: { authorization: `Bearer ${token}` } });
  expect(call.status).toBe(401);
  expect(await client.refresh(next!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
});
