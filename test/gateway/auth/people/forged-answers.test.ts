import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { findFreePort } from '../../../support/free-port.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { CLIENT, peopleToml } from './company.ts';
import { openVisitor, START } from './visitor.ts';

// A provider that answers with whatever a test wants: identity tokens and logout tokens that are not right.

const RULES = '[[people.groups]]\ngroup = "staff"\norganisation = "acme"\n';
const EVENT = { 'http://schemas.openid.net/event/backchannel-logout': {} };
const good = await generateKeyPair('RS256');
const evil = await generateKeyPair('RS256');

let provider: Server;
let issuer: string;
let gateway: Spine;
let changes: JWTPayload = {};
let nonce = '';
let verifier: string | null = null;
let signer = good.privateKey;

const sign = (claims: JWTPayload, key = good.privateKey, type = 'JWT') =>
  new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one', typ: type }).sign(key);
const seconds = () => Math.floor(Date.now() / 1_000);

beforeAll(async () => {
  const jwk = { ...(await exportJWK(good.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
  provider = createServer((request, response) => {
    const json = (body: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (request.url!.startsWith('/.well-known/'))
      return json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        id_token_signing_alg_values_supported: ['RS256'],
        authorization_response_iss_parameter_supported: true,
      });
    if (request.url === '/jwks') return json({ keys: [jwk] });
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      verifier = new URLSearchParams(text).get('code_verifier');
      const at = seconds();
      const claims = { iss: issuer, sub: 'ann', aud: CLIENT.id, iat: at, exp: at + 300, nonce, groups: ['staff'] };
      void sign({ ...claims, ...changes }, signer).then((token) =>
        json({ access_token: 'a', token_type: 'Bearer', id_token: token }),
      );
    });
    return undefined;
  });
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const port = await findFreePort();
  const toml = `[server]\npublic_url = "http://127.0.0.1:${port}"\n${UNHURRIED}${peopleToml(issuer, RULES)}`;
  gateway = await startSpine({ port, toml });
});
afterAll(async () => {
  await gateway.stop();
  provider.closeAllConnections();
  provider.close();
});
beforeEach(() => {
  changes = {};
  signer = good.privateKey;
});

const signIn = async () => {
  const visitor = openVisitor(gateway.origin);
  const asked = (await visitor.step(gateway.origin + START))!;
  nonce = asked.searchParams.get('nonce')!;
  const answer = `${gateway.origin}/api/v1/auth/people/callback?code=c&iss=${encodeURIComponent(issuer)}`;
  const page = await visitor.step(`${answer}&state=${asked.searchParams.get('state')}`);
  return { visitor, asked, outcome: page!.searchParams.get('people') };
};

test('a right answer signs in, with PKCE', async () => {
  const { asked, outcome } = await signIn();
  expect(outcome).toBe('done');
  expect(asked.searchParams.get('code_challenge_method')).toBe('S256');
  expect(verifier).toMatch(/^[\w-]{43,}$/);
});

test.each([
  ['of another issuer', { iss: 'https://evil.example' }],
  ['for another audience', { aud: 'another' }],
  ['for another party', { aud: [CLIENT.id, 'another'], azp: 'another' }],
  ['that has expired', { iat: seconds() - 900, exp: seconds() - 600 }],
  ['with another nonce', { nonce: 'another' }],
  ['without a nonce', { nonce: undefined }],
  ['without a subject', { sub: undefined }],
])('an identity token %s is refused', async (_what, wrong) => {
  changes = wrong as JWTPayload;
  const { visitor, outcome } = await signIn();
  expect(outcome).toBe('refused');
  expect(await (await visitor.ask('GET', '/api/v1/auth/session')).json()).toMatchObject({ account: null });
});

test('clocks may differ by a minute', async () => {
  changes = { iat: seconds() + 30, exp: seconds() + 330 };
  expect((await signIn()).outcome).toBe('done');
  changes = { iat: seconds() - 330, exp: seconds() - 30 };
  expect((await signIn()).outcome).toBe('done');
});

const logout = async (claims: JWTPayload, key = good.privateKey) => {
  const form = new URLSearchParams({ logout_token: await sign(claims, key, 'logout+jwt') });
  const answer = await fetch(`${gateway.origin}/api/v1/auth/people/logout`, { method: 'POST', body: form });
  return { status: answer.status, text: await answer.text() };
};
let count = 0;
const token = (more: object = {}): JWTPayload => ({
  iss: issuer,
  aud: CLIENT.id,
  sub: 'ann',
  iat: seconds(),
  exp: seconds() + 120,
  jti: `jti-${(count += 1)}`,
  events: EVENT,
  ...more,
});

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
  expect((await logout(token(), evil.privateKey)).status).toBe(400);
  expect((await visitor.ask('GET', '/api/v1/keys')).status).toBe(200);
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
  changes = { sid: 'first' };
  const { visitor: first } = await signIn();
  changes = { sid: 'second' };
  const { visitor: second } = await signIn();
  expect((await logout(token({ sid: 'first' }))).status).toBe(200);
  expect((await first.ask('GET', '/api/v1/keys')).status).toBe(401);
  expect((await second.ask('GET', '/api/v1/keys')).status).toBe(200);
  expect((await logout(token({ sid: 'second', sub: undefined }))).status).toBe(200);
  expect((await second.ask('GET', '/api/v1/keys')).status).toBe(401);
});

test('an identity token that somebody else signed is refused', async () => {
  signer = evil.privateKey;
  expect((await signIn()).outcome).toBe('refused');
});
