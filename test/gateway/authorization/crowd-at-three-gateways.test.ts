import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { until } from '../../support/cluster.ts';
import { type CrowdWorld, isAnswer, persistently, startCrowdWorld } from '../../support/crowd.ts';
import type { Tokens } from './support/client-memory.ts';
import { A_BUDGET, createPerson } from './support/person.ts';
import { registerRaw, type RawClient } from './support/raw-client.ts';

/*
 * Two hundred programs sign in at once, at three gateways of one database behind one address, and call a model. A
 * gateway is killed in the middle and comes back; owners take grants away, and grants end. Each program does what a
 * program does: it tries again, signs in anew once its refresh token is worth nothing, and repeats a call with its key.
 */

const PROGRAMS = 200;
const CLIENTS = 20;
const ACCOUNTS = 8;
/** Micro-USD that each account begins with. */
const FUNDS = 1_000_000;

let world: CrowdWorld;
let origin: string;
beforeAll(async () => {
  world = await startCrowdWorld({
    postgresUrl: inject('postgresUrl'),
    toml: () => '[authorization]\nenabled = true\n',
  });
  ({ origin } = world);
}, 120_000);
afterAll(() => world?.stop());

/** What becomes of a program's grant. */
type Fate = 'lives' | 'revoked' | 'expires';
const fateOf = (index: number): Fate => (index % 10 === 3 ? 'revoked' : index % 10 === 7 ? 'expires' : 'lives');
const EXPIRES_MS = 5_000;

interface Answer {
  readonly status: number;
  readonly text: string;
}
/** Calls that the killed gateway had begun: their keys are taken until their locks expire. */
let broken = 0;
async function chat(token: string, once: string): Promise<Answer> {
  const answer = await persistently(async () => {
    const response = await fetch(`${origin}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': once },
      body: JSON.stringify({ model: 'test/model', max_tokens: 5, messages: [{ role: 'user', content: '!tokens:5' }] }),
    });
    return { status: response.status, text: await response.text() };
  }, isAnswer);
  if (answer.status !== 409) return answer;
  broken += 1;
  return chat(token, `${once}-again`);
}

test('each program ends where it should, and the books are right', { timeout: 1_200_000 }, async () => {
  const { here, killable } = world;
  const accounts = await Promise.all(
    Array.from({ length: ACCOUNTS }, (_, index) => here.openAccount(`crowd-${index}`, FUNDS / 1e6)),
  );
  const owner = (key: string, method: string, path: string) =>
    persistently(async () => {
      const response = await fetch(`${here.baseUrl}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${key}` },
      });
      return { status: response.status, body: (await response.json()) as { data: never } };
    }, isAnswer);
  const grants = async (key: string) =>
    (
      (await owner(key, 'GET', '/keys')).body.data as { hash: string; name: string; usage: number; client: string }[]
    ).filter(({ client }) => client !== null);
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => registerRaw(origin, { resource: `${origin}/api/v1` })),
  );

  let signedIn = 0;
  let calls = 0;
  let again = 0;
  const signIn = (client: RawClient, key: string, name: string, fate: Fate): Promise<Tokens> =>
    persistently(() => {
      const soon = fate === 'expires' ? { expires_at: new Date(Date.now() + EXPIRES_MS).toISOString() } : {};
      return client.signIn(createPerson(origin, key), { limits: { ...A_BUDGET, name, ...soon } });
    });
  const refreshed = async (client: RawClient, tokens: Tokens): Promise<Tokens | null> => {
    const { status, body } = await persistently(() => client.refresh(tokens.refresh_token!), isAnswer);
    return status === 200 ? body : null;
  };
  const program = async (index: number): Promise<string> => {
    const client = clients[index % CLIENTS]!;
    const { key } = accounts[index % ACCOUNTS]!;
    const fate = fateOf(index);
    const name = `program ${index}`;
    let tokens = await signIn(client, key, name, fate);
    signedIn += 1;
    const first = await chat(tokens.access_token, `first-${index}`);
    if (fate === 'expires' && first.status === 401) return 'expired';
    if (first.status !== 200) return `first: ${first.status} ${first.text}`;
    calls += 1;

    if (fate === 'revoked') {
      const own = (await grants(key)).filter((grant) => grant.name === name);
      for (const { hash } of own) await owner(key, 'DELETE', `/keys/${hash}`);
      // Other gateways know it within a second.
      await until(async () => (await chat(tokens.access_token, `over-${index}`)).status === 401, 'the grant is over');
      return (await refreshed(client, tokens)) === null ? 'revoked' : 'refreshed without a grant';
    }
    if (fate === 'expires') {
      await until(async () => (await chat(tokens.access_token, `over-${index}`)).status === 401, 'the grant is over');
      return (await refreshed(client, tokens)) === null ? 'expired' : 'refreshed after its end';
    }
    const next = await refreshed(client, tokens);
    // The answer of the killed gateway may be lost, and then the token was used.
    if (next === null) {
      again += 1;
      tokens = await signIn(client, key, name, fate);
    } else tokens = next;
    const last = await chat(tokens.access_token, `last-${index}`);
    calls += 1;
    return last.status === 200 ? 'lives' : `last: ${last.status} ${last.text}`;
  };

  const begun = performance.now();
  const crowd = Promise.all(Array.from({ length: PROGRAMS }, (_, index) => program(index)));
  await until(() => calls >= 20, 'programs call', 120_000);
  await killable.kill9();
  const atKill = [signedIn, calls];
  await until(() => calls >= 60, 'programs go on', 120_000);
  await killable.restart();
  const ends = await crowd;
  const seconds = (performance.now() - begun) / 1_000;
  console.log(
    `  ${PROGRAMS} programs in ${seconds.toFixed(1)} s; killed after ${atKill.join(' sign-ins and ')} calls; ${again} signed in again, ${broken} calls broke off`,
  );
  const expected = { lives: 'lives', revoked: 'revoked', expires: 'expired' };
  expect(ends).toEqual(ends.map((_, index) => expected[fateOf(index)]));

  const rests = await world.close(accounts.map(({ account }) => account));
  const spent = rests.reduce((sum, left) => sum + FUNDS - left, 0);
  // Each answer cost five tokens at 2 USD per million, and none was paid twice. Of those whose grant was ending, each
  // may have had one more, and what broke off may have been answered and paid.
  expect(spent).toBeGreaterThanOrEqual(10 * calls);
  expect(spent).toBeLessThanOrEqual(10 * (calls + broken + PROGRAMS / 5));
});
