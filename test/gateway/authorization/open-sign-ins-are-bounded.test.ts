import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, registerRaw, type RawClient } from './support/raw-client.ts';

// Sign-ins that nobody finishes: an attack that would fill the database. The proxy in front says where each comes from.

const HOUR = 60 * 60_000;

let spine: Spine;
let person: Person;
let client: RawClient;
let ahead = 0;
beforeAll(async () => {
  spine = await startSpine({
    mode: 'development',
    toml: '[server]\ntrusted_proxies = ["127.0.0.1"]\n[limits]\nanonymous_requests_per_minute = 100000\n',
    now: () => Date.now() + ahead,
  });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin);
});
afterAll(() => spine.stop());

const begin = (from: string) =>
  fetch(client.authorizeUrl(), { redirect: 'manual', headers: { 'x-forwarded-for': from } });
const isOpen = (response: Response) => response.headers.get('location')?.startsWith('/authorize/') ?? false;

/** As many sign-ins as a place may have, from all its addresses, and how many of them were begun. */
async function flood(addressOf: (index: number) => string, wanted: number): Promise<number> {
  let opened = 0;
  for (let done = 0; done < wanted; done += 20) {
    const some = Array.from({ length: 20 }, (_none, index) => begin(addressOf(done + index)));
    opened += (await Promise.all(some)).filter(isOpen).length;
  }
  return opened;
}

test('a network of 256 addresses, or of 64 bits, has at most 500, and another one goes on', async () => {
  const page = await person.open(client.authorizeUrl());
  expect(await flood((index) => `203.0.113.${index % 256}`, 520)).toBe(500);
  expect(await flood((index) => `2001:db8:1:2:${index.toString(16)}::1`, 520)).toBe(500);

  // The program hears of it in the form of OAuth, and the browser when to come again.
  const refused = await begin('203.0.113.77');
  const answer = new URL(refused.headers.get('location')!);
  expect([refused.status, answer.origin + answer.pathname]).toEqual([303, RAW_CALLBACK]);
  expect(Object.fromEntries(answer.searchParams)).toEqual({
    error: 'temporarily_unavailable',
    error_description: 'too many sign-ins from your network are open and not finished, try again in some minutes',
    state: 'its-state',
    iss: spine.origin,
  });
  expect(refused.headers.get('retry-after')).toBe('600');
  expect(refused.headers.getSetCookie().filter((line) => line.includes('tollgate-asked'))).toEqual([]);

  expect(isOpen(await begin('203.0.114.1'))).toBe(true);
  // What was begun before is finished all the same.
  expect((await client.redeem(await person.allow(page))).status).toBe(200);

  // Nobody waits for an operator: they end by themselves.
  ahead += HOUR;
  expect(isOpen(await begin('203.0.113.77'))).toBe(true);
  expect(await spine.faults()).toEqual([]);
});

test('a no without a credential makes no place for more', async () => {
  const own = createPerson(spine.origin, spine.key);
  for (let index = 0; index < 520; index += 1) {
    const response = await begin('192.0.2.1');
    if (!isOpen(response)) {
      expect(index).toBe(500);
      return;
    }
    const page = new URL(response.headers.get('location')!, spine.origin);
    const cookie = response.headers
      .getSetCookie()
      .map((line) => line.split(';', 1)[0]!)
      .join('; ');
    expect((await own.send('DELETE', page, undefined, { cookie })).status).toBe(200);
  }
  throw new Error('more than 520 were begun');
});

test('a network registers at most 500 programs that nobody uses', async () => {
  const register = (from: string) =>
    fetch(`${spine.origin}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': from },
      body: JSON.stringify({ client_name: 'Many', redirect_uris: [RAW_CALLBACK] }),
    });
  let statuses: number[] = [];
  for (let done = 0; done < 520; done += 20)
    statuses = [
      ...statuses,
      ...(await Promise.all(
        Array.from({ length: 20 }, async (_none, index) => (await register(`203.0.113.${index}`)).status),
      )),
    ];
  expect(statuses.filter((status) => status === 201)).toHaveLength(500);
  const refused = await register('203.0.113.5');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
  expect(await refused.json()).toMatchObject({ error: 'temporarily_unavailable' });
  expect((await register('203.0.114.1')).status).toBe(201);
  // An address of the network that has none is not shut out by those beside it.
  expect((await register('203.0.113.99')).status).toBe(201);
});
