import { createHash, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, registerRaw, type RawClient } from './support/raw-client.ts';

/* Tokens that are bound to a key of their client (DPoP, RFC 9449). */

let spine: Spine;
let person: Person;
let client: RawClient;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development', toml: '[limits]\nanonymous_requests_per_minute = 1000\n' });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
});
afterAll(() => spine.stop());

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
const newPair = () => generateKeyPair('ES256', { extractable: true });

async function proofOf(
  pair: Pair,
  method: string,
  url: string,
  claims: object = {},
  header: object = {},
): Promise<string> {
  const jwk = await exportJWK(pair.publicKey);
  return new SignJWT({ htm: method, htu: url, jti: randomUUID(), iat: Math.floor(Date.now() / 1_000), ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
    .sign(pair.privateKey);
}

async function signIn(pair: Pair) {
  const answer = await person.allow(await person.open(client.authorizeUrl()));
  const proof = await proofOf(pair, 'POST', `${spine.origin}/oauth/token`);
  const form = {
    grant_type: 'authorization_code',
    code: answer.searchParams.get('code')!,
    redirect_uri: RAW_CALLBACK,
    code_verifier: client.verifier,
  };
  const { body } = await client.token(form, { dpop: proof });
  expect(body.token_type).toBe('DPoP');
  return body;
}

const athOf = (token: string) => createHash('sha256').update(token).digest('base64url');
const call = async (headers: Readonly<Record<string, string>>) => {
  const response = await fetch(`${spine.url}/key`, { headers });
  return { status: response.status, text: await response.text() };
};

test('a bound token calls with a proof, and each proof counts once', async () => {
  const pair = await newPair();
  const { access_token: token, refresh_token: refresh } = await signIn(pair);
  const dpop = await proofOf(pair, 'GET', `${spine.url}/key`, { ath: athOf(token) });
  const headers = { authorization: `DPoP ${token}`, dpop };
  expect(await call(headers)).toMatchObject({ status: 200 });
  expect(await call(headers)).toMatchObject({ status: 401, text: expect.stringContaining('was used before') });
  const again = await proofOf(pair, 'POST', `${spine.origin}/oauth/token`);
  expect(
    (await client.token({ grant_type: 'refresh_token', refresh_token: refresh! }, { dpop: again })).body.token_type,
  ).toBe('DPoP');
});

test.each(['/api/v1/key/', '/v1/key', '/v1/key/'])(
  'a proof is for the address as its client wrote it: %s',
  async (path) => {
    const pair = await newPair();
    const { access_token: token } = await signIn(pair);
    const dpop = await proofOf(pair, 'GET', spine.origin + path, { ath: athOf(token) });
    const response = await fetch(spine.origin + path, { headers: { authorization: `DPoP ${token}`, dpop } });
    expect(response.status).toBe(200);
  },
);

test('whoever has a bound token, but not its key, calls nothing', async () => {
  const pair = await newPair();
  const { access_token: token, refresh_token: refresh } = await signIn(pair);
  const url = `${spine.url}/key`;
  const ath = athOf(token);
  const thief = await newPair();
  const proofs = {
    'needs DPoP': { authorization: `Bearer ${token}` },
    'is missing': { authorization: `DPoP ${token}` },
    'cannot be verified': { authorization: `DPoP ${token}`, dpop: 'e30.e30.e30' },
    'another key': { authorization: `DPoP ${token}`, dpop: await proofOf(thief, 'GET', url, { ath }) },
    'another request': { authorization: `DPoP ${token}`, dpop: await proofOf(pair, 'POST', url, { ath }) },
    'for another request': {
      authorization: `DPoP ${token}`,
      dpop: await proofOf(pair, 'GET', `${spine.url}/keys`, { ath }),
    },
    'is for another request': {
      authorization: `DPoP ${token}`,
      dpop: await proofOf(pair, 'GET', 'https://evil.example/api/v1/key', { ath }),
    },
    'another token': { authorization: `DPoP ${token}`, dpop: await proofOf(pair, 'GET', url, { ath: athOf('x') }) },
    'for another token': { authorization: `DPoP ${token}`, dpop: await proofOf(pair, 'GET', url) },
    'not recent': {
      authorization: `DPoP ${token}`,
      dpop: await proofOf(pair, 'GET', url, { ath, iat: Math.floor(Date.now() / 1_000) - 120 }),
    },
    'is not recent': {
      authorization: `DPoP ${token}`,
      dpop: await proofOf(pair, 'GET', url, { ath, iat: Math.floor(Date.now() / 1_000) + 120 }),
    },
    verified: { authorization: `DPoP ${token}`, dpop: await proofOf(pair, 'GET', url, { ath }, { typ: 'jwt' }) },
  };
  for (const [why, headers] of Object.entries(proofs))
    expect(await call(headers)).toMatchObject({ status: 401, text: expect.stringContaining(why) });
  expect(await client.token({ grant_type: 'refresh_token', refresh_token: refresh! })).toMatchObject({ status: 400 });
  const foreign = await proofOf(thief, 'POST', `${spine.origin}/oauth/token`);
  expect(await client.token({ grant_type: 'refresh_token', refresh_token: refresh! }, { dpop: foreign })).toMatchObject(
    { status: 400 },
  );
});

test('a bearer token is none of DPoP', async () => {
  const pair = await newPair();
  const { access_token: token } = await client.signIn(person);
  const dpop = await proofOf(pair, 'GET', `${spine.url}/key`, { ath: athOf(token) });
  expect(await call({ authorization: `DPoP ${token}`, dpop })).toMatchObject({ status: 401 });
});
