import { createHmac } from 'node:crypto';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { CLIENT, peopleToml } from './company.ts';
import { type Forger, startForger } from './forger.ts';

// A provider that answers with whatever a test wants: identity tokens and logout tokens that are not right.

const RULES = '[[people.groups]]\ngroup = "staff"\norganisation = "acme"\n';
const seconds = () => Math.floor(Date.now() / 1_000);

let forger: Forger;
let gateway: Spine;
beforeAll(async () => {
  forger = await startForger();
  const port = await findFreePort();
  const toml = `[sign_in]\nfailures_per_minute = 100000\n[server]\npublic_url = "http://127.0.0.1:${port}"\n${UNHURRIED}${peopleToml(forger.issuer, RULES)}`;
  gateway = await startSpine({ port, toml });
});
afterAll(async () => {
  await gateway.stop();
  await forger.stop();
});
beforeEach(() => {
  forger.changes = {};
  forger.signer = forger.good;
});
const signIn = () => forger.signIn(gateway.origin);

test('a right answer signs in, with PKCE', async () => {
  const { asked, outcome } = await signIn();
  expect(outcome).toBe('done');
  expect(asked.searchParams.get('code_challenge_method')).toBe('S256');
  expect(forger.verifier).toMatch(/^[\w-]{43,}$/);
});

test.each([
  ['of another issuer', { iss: 'https://evil.example' }],
  ['for another audience', { aud: 'another' }],
  ['for another party', { aud: [CLIENT.id, 'another'], azp: 'another' }],
  ['of the future', { iat: seconds() + 3_600, exp: seconds() + 7_200 }],
  ['of a sign-in in the future', { auth_time: seconds() + 3_600 }],
  ['that has expired', { iat: seconds() - 900, exp: seconds() - 600 }],
  ['with another nonce', { nonce: 'another' }],
  ['without a nonce', { nonce: undefined }],
  ['without a subject', { sub: undefined }],
])('an identity token %s is refused', async (_what, wrong) => {
  forger.changes = wrong as JWTPayload;
  const { visitor, outcome } = await signIn();
  expect(outcome).toBe('refused');
  expect(await (await visitor.ask('GET', '/api/v1/auth/session')).json()).toMatchObject({ account: null });
});

test('clocks may differ by a minute', async () => {
  forger.changes = { iat: seconds() + 30, exp: seconds() + 330 };
  expect((await signIn()).outcome).toBe('done');
  forger.changes = { iat: seconds() - 330, exp: seconds() - 30 };
  expect((await signIn()).outcome).toBe('done');
});

const logout = async (claims: JWTPayload, key = forger.good) => {
  const form = new URLSearchParams({ logout_token: await forger.sign(claims, key, 'logout+jwt') });
  const answer = await fetch(`${gateway.origin}/api/v1/auth/people/logout`, { method: 'POST', body: form });
  return { status: answer.status, text: await answer.text() };
};
const token = (more: object = {}) => forger.logoutClaims(more);

test.each([
  ['another audience', { aud: 'another' }],
  ['another issuer', { iss: 'https://evil.example' }],
  ['a nonce', { nonce: 'n' }],
  ['no events', { events: undefined }],
  ['other events', { events: { 'http://schemas.openid.net/event/other': {} } }],
  ['no jti', { jti: undefined }],
  ['neither sub nor sid', { sub: undefined }],
  ['an old iat', { iat: seconds() - 3_600, exp: seconds() + 60 }],
  ['an end in the past', { iat: seconds() - 300, exp: seconds() - 200 }],
])('a logout token with %s is refused, and ends nothing', async (_what, wrong) => {
  const { visitor } = await signIn();
  expect((await logout(token(wrong))).status).toBe(400);
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
});

test('a logout token that somebody else signed is refused', async () => {
  const { visitor } = await signIn();
  expect((await logout(token(), forger.evil)).status).toBe(400);
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
});

const raw = async (body: string | URLSearchParams, headers: Readonly<Record<string, string>> = {}) =>
  (await fetch(`${gateway.origin}/api/v1/auth/people/logout`, { method: 'POST', body, headers })).status;
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** A logout token that its header says to be signed in another way. */
const forged = (header: object, signature: (text: string) => string, claims = token()) => {
  const text = `${part({ kid: 'one', typ: 'logout+jwt', ...header })}.${part(claims)}`;
  return `${text}.${signature(text)}`;
};
const hmac = (key: string) => (text: string) => createHmac('sha256', key).update(text).digest('base64url');

test.each<readonly [string, () => string | Promise<string>]>([
  ['unsigned', () => forged({ alg: 'none' }, () => '')],
  ['unsigned, in other letters', () => forged({ alg: 'NoNe' }, () => 'e30')],
  ["signed with the client's secret", () => forged({ alg: 'HS256' }, hmac(CLIENT.secret))],
  ['signed with the public key as a secret', () => forged({ alg: 'HS256' }, hmac(JSON.stringify(forger.jwk)))],
  ['of a key in its own header', () => signedByItself()],
  ['with an extension that nobody knows', () => forged({ alg: 'RS256', crit: ['x'], x: 1 }, () => 'AAAA')],
  ['of the future', () => forger.sign(token({ iat: seconds() + 3_600, exp: seconds() + 7_200 }))],
  ['that is an identity token', () => forger.sign({ ...token(), events: undefined, nonce: 'n' })],
  ['with an event in a list', () => forger.sign(token({ events: Object.keys(token()['events'] as object) }))],
  ['with a subject in a list', () => forger.sign(token({ sub: ['ann'] }))],
])('a logout token %s is refused, and ends nothing', async (_what, make) => {
  const { visitor } = await signIn();
  expect(await raw(new URLSearchParams({ logout_token: await make() }))).toBe(400);
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
});

async function signedByItself(): Promise<string> {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const jwk = await exportJWK(publicKey);
  const header = { alg: 'RS256', kid: 'own', typ: 'logout+jwt', jwk, jku: `${gateway.origin}/evil` };
  return new SignJWT(token()).setProtectedHeader(header).sign(privateKey);
}

test('a logout token comes alone, in a form', async () => {
  const { visitor } = await signIn();
  const text = await forger.sign(token(), forger.good, 'logout+jwt');
  expect(await raw(`logout_token=${text}&logout_token=${text}`, FORM)).toBe(400);
  expect(await raw(JSON.stringify({ logout_token: text }), { 'content-type': 'application/json' })).not.toBe(200);
  expect(await raw('', FORM)).toBe(400);
  const inAddress = await fetch(`${gateway.origin}/api/v1/auth/people/logout?logout_token=${text}`);
  expect(inAddress.status).toBe(405);
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
  expect(await raw(new URLSearchParams({ logout_token: text }))).toBe(200);
});
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

test('a logout token with the session of somebody else ends that of its subject alone', async () => {
  forger.changes = { sid: 'of ann' };
  const { visitor: ann } = await signIn();
  forger.changes = { sub: 'bob', sid: 'of bob' };
  const { visitor: bob } = await signIn();
  expect((await logout(token({ sub: 'bob', sid: 'of ann' }))).status).toBe(200);
  expect([(await ann.ask('GET', '/api/v1/keys')).status, (await bob.ask('GET', '/api/v1/keys')).status]).toEqual([
    200, 200,
  ]);
});

test('a right logout token ends the sessions once', async () => {
  const { visitor } = await signIn();
  const claims = token();
  expect((await logout(claims)).status).toBe(200);
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(401);
  const { visitor: later } = await signIn();
  const again = await logout(claims);
  expect(again).toMatchObject({ status: 400, text: expect.stringContaining('used before') as string });
  expect((await later.ask('GET', '/api/v1/keys')).status).toBe(200);
});

test('a logout token of one session ends that one', async () => {
  forger.changes = { sid: 'first' };
  const { visitor: first } = await signIn();
  forger.changes = { sid: 'second' };
  const { visitor: second } = await signIn();
  expect((await logout(token({ sid: 'first' }))).status).toBe(200);
  expect((await first.ask('GET', '/api/v1/keys')).status).toBe(401);
  expect((await second.ask('GET', '/api/v1/keys')).status).toBe(200);
  expect((await logout(token({ sid: 'second', sub: undefined }))).status).toBe(200);
  expect((await second.ask('GET', '/api/v1/keys')).status).toBe(401);
});

test('an identity token that somebody else signed is refused', async () => {
  forger.signer = forger.evil;
  expect((await signIn()).outcome).toBe('refused');
});
