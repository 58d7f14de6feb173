import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import type { Tokens } from './support/client-memory.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, registerRaw, type RawClient } from './support/raw-client.ts';

/*
 * Honest programs send a refresh token or a code twice: in parallel, and after an answer that was lost. Within 60 s of
 * the first use that is the same act; later it ends the grant.
 */

const TOML = '[limits]\nanonymous_requests_per_minute = 10000\nrequests_per_minute = 10000\n';

let spine: Spine;
let person: Person;
let client: RawClient;
let ahead = 0;
const begun = Date.now();
/** A hundredth of the real time, so that a busy machine changes nothing. */
const now = () => Math.floor(begun + ahead + (Date.now() - begun) / 100);
beforeAll(async () => {
  const toml = `${TOML}account_requests_per_minute = 10000\n[sign_in]\nfailures_per_minute = 10000\n`;
  spine = await startSpine({ mode: 'development', now, elapsed: () => performance.now(), toml });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
});
afterAll(() => spine.stop());

const statusOf = async (token: string): Promise<number> =>
  (await fetch(`${spine.url}/key`, { headers: { authorization: `Bearer ${token}` } })).status;
const REFUSED = { status: 400, body: { error: 'invalid_grant' } };
const newCode = async () => person.allow(await person.open(client.authorizeUrl()));

async function goesOn({ access_token: access, refresh_token: refresh }: Tokens): Promise<void> {
  expect(await statusOf(access)).toBe(200);
  expect((await client.refresh(refresh!)).status).toBe(200);
}

async function hasEnded({ access_token: access, refresh_token: refresh }: Tokens): Promise<void> {
  expect(await statusOf(access)).toBe(401);
  expect(await client.refresh(refresh!)).toMatchObject(REFUSED);
}

test('eight refreshes at once with one token: all get tokens of their own, and go on', async () => {
  const { refresh_token: shared } = await client.signIn(person);
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.refresh(shared!)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
  expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(8);
  await Promise.all(answers.map(({ body }) => goesOn(body)));
});

test('a refresh whose answer was lost is sent again within a minute, and both pairs go on', async () => {
  const first = await client.signIn(person);
  const { body: lost } = await client.refresh(first.refresh_token!);
  ahead += 59_000;
  const { status, body } = await client.refresh(first.refresh_token!);
  expect(status).toBe(200);
  await goesOn(body);
  await goesOn(lost);
});

test('a refresh token that comes again after a minute ends the grant with all its pairs', async () => {
  const first = await client.signIn(person);
  const { body: second } = await client.refresh(first.refresh_token!);
  ahead += 30_000;
  const { body: repeated } = await client.refresh(first.refresh_token!);
  // The minute is that of the first use.
  ahead += 30_000;
  expect(await client.refresh(first.refresh_token!)).toMatchObject(REFUSED);
  await Promise.all([first, second, repeated].map(hasEnded));
});

test('eight redeem one code at once, and one more when the code itself has expired', async () => {
  const answer = await newCode();
  ahead += 50_000;
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.redeem(answer)));
  ahead += 59_000;
  answers.push(await client.redeem(answer));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 200));
  await Promise.all(answers.map(({ body }) => goesOn(body)));
});

test('a code that comes again after a minute ends the grant', async () => {
  const answer = await newCode();
  const { body } = await client.redeem(answer);
  ahead += 60_000;
  expect(await client.redeem(answer)).toMatchObject(REFUSED);
  await hasEnded(body);
});

test.each([
  ['another verifier', { code_verifier: 'a'.repeat(43) }],
  ['no verifier', { code_verifier: undefined }],
  ['another redirect address', { redirect_uri: 'http://127.0.0.1:7878/other' }],
])('a code that comes again with %s wins nothing, and ends nothing', async (_what, changes) => {
  const answer = await newCode();
  const { body } = await client.redeem(answer);
  for (const later of [0, 61_000]) {
    ahead += later;
    expect((await client.redeem(answer, changes)).status).toBe(400);
  }
  await goesOn(body);
});

test('another client wins nothing by a code or a refresh token that was just used', async () => {
  const thief = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
  const answer = await newCode();
  const { body } = await client.redeem(answer);
  const { body: next } = await client.refresh(body.refresh_token!);
  expect(await thief.redeem(answer, { code_verifier: client.verifier })).toMatchObject(REFUSED);
  expect(await thief.refresh(body.refresh_token!)).toMatchObject(REFUSED);
  await goesOn(next);
});

test('a code that was used with a DPoP key comes again with this key alone', async () => {
  const [own, thiefs] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  const proofBy = async ({ publicKey, privateKey }: typeof own) => {
    const claims = { htm: 'POST', htu: `${spine.origin}/oauth/token`, jti: crypto.randomUUID() };
    const header = { alg: 'ES256', typ: 'dpop+jwt', jwk: await exportJWK(publicKey) };
    return new SignJWT(claims).setIssuedAt().setProtectedHeader(header).sign(privateKey);
  };
  const code = (await newCode()).searchParams.get('code')!;
  const form = { grant_type: 'authorization_code', code, redirect_uri: RAW_CALLBACK, code_verifier: client.verifier };
  const redeem = async (dpop: string | null) => client.token(form, dpop === null ? {} : { dpop });
  const { body: first } = await redeem(await proofBy(own));
  expect(await redeem(await proofBy(own))).toMatchObject({ status: 200, body: { token_type: 'DPoP' } });
  expect(await redeem(null)).toMatchObject(REFUSED);
  const refresh = { grant_type: 'refresh_token', refresh_token: first.refresh_token! };
  expect(await client.token(refresh, { dpop: await proofBy(own) })).toMatchObject(REFUSED);
  expect(await redeem(await proofBy(thiefs))).toMatchObject(REFUSED);
});

test('of the pairs of a grant the 32 newest can be refreshed', async () => {
  const { refresh_token: shared } = await client.signIn(person);
  const pairs: Tokens[] = [];
  for (let index = 0; index < 34; index += 1) {
    pairs.push((await client.refresh(shared!)).body);
    ahead += 1;
  }
  // A forgotten one is as one that never was: it ends nothing.
  for (const forgotten of pairs.slice(0, 2))
    expect(await client.refresh(forgotten.refresh_token!)).toMatchObject(REFUSED);
  await Promise.all(pairs.slice(2).map(goesOn));
  expect(await spine.faults()).toEqual([]);
});
