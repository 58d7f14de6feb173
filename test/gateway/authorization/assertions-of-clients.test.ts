import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { startDocumentServer, type DocumentServer } from './support/document-server.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, registerRaw } from './support/raw-client.ts';

/* Clients that prove themselves by a key of their document (private_key_jwt), and thieves of their proofs. */

let documents: DocumentServer;
let spine: Spine;
let person: Person;
let keys: Awaited<ReturnType<typeof generateKeyPair>>;
beforeAll(async () => {
  keys = await generateKeyPair('ES256', { extractable: true });
  const jwks = { keys: [{ ...(await exportJWK(keys.publicKey)), kid: 'one', alg: 'ES256' }] };
  documents = await startDocumentServer((path, origin, response) => {
    const json = (body: object, status = 200, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    const client = {
      client_id: origin + path,
      redirect_uris: [RAW_CALLBACK],
      token_endpoint_auth_method: 'private_key_jwt',
    };
    if (path === '/client') return json({ ...client, jwks });
    if (path === '/keys') return json(jwks);
    if (path === '/moved') return json(jwks, 302, { location: `${origin}/keys` });
    if (path === '/keys-elsewhere') return json({ ...client, jwks_uri: `${origin}/moved` });
    if (path === '/keys-here') return json({ ...client, jwks_uri: `${origin}/keys` });
    if (path === '/keys-by-http') return json({ ...client, jwks_uri: `${origin.replace('https', 'http')}/keys` });
    return json({}, 404);
  });
  spine = await startSpine({ mode: 'development', toml: '[webhooks]\nallow_private = true\n' });
  person = createPerson(spine.origin, spine.key);
});
afterAll(async () => {
  await spine.stop();
  await documents.close();
});

const idOf = (path: string) => documents.origin + path;
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;

async function assertion(path: string, changes: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const id = idOf(path);
  return new SignJWT({ iss: id, sub: id, aud: spine.origin, jti: randomUUID(), exp: inSeconds(60), ...changes })
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .sign(keys.privateKey);
}

/** Redeems a new code of the client with an assertion. */
async function redeem(path: string, text: string | undefined) {
  const client = await registerRaw(spine.origin, { id: idOf(path) });
  const answer = await person.allow(await person.open(client.authorizeUrl()));
  return client.redeem(answer, {
    client_assertion: text,
    client_assertion_type: text && 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  });
}

const REFUSED = { status: 401, body: { error: 'invalid_client' } };

test('an assertion for this server alone gets tokens, once', async () => {
  const one = await assertion('/client');
  expect(await redeem('/client', one)).toMatchObject({ status: 200 });
  expect(await redeem('/client', one)).toMatchObject(REFUSED);
  expect(await redeem('/client', await assertion('/client', { aud: [spine.origin] }))).toMatchObject({ status: 200 });
  expect(await redeem('/keys-here', await assertion('/keys-here'))).toMatchObject({ status: 200 });
});

const WRONG: Readonly<Record<string, () => Promise<string | undefined>>> = {
  'no assertion': async () => undefined,
  'one that another server got': () => assertion('/client', { aud: 'https://evil.example' }),
  // The other server could bring it here.
  'one for another server and this one': () => assertion('/client', { aud: ['https://evil.example', spine.origin] }),
  'one of another client': () => assertion('/client', { iss: idOf('/keys-here') }),
  'one that has ended': () => assertion('/client', { exp: inSeconds(-120) }),
  // Its id would have to be remembered until then.
  'one that is good for years': () => assertion('/client', { exp: inSeconds(100_000_000) }),
  'one without an id': () => assertion('/client', { jti: undefined }),
  'one that is signed with the public key as a secret': async () =>
    new SignJWT({ iss: idOf('/client'), sub: idOf('/client'), aud: spine.origin, jti: randomUUID() })
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .setExpirationTime('1m')
      .sign(new TextEncoder().encode(JSON.stringify(await exportJWK(keys.publicKey)))),
  'one without a signature': async () => {
    const [, claims] = (await assertion('/client')).split('.');
    return `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`;
  },
};

test.each(Object.entries(WRONG))('%s gets none', async (_what, make) => {
  expect(await redeem('/client', await make())).toMatchObject(REFUSED);
});

test('the address of keys is fetched without redirects, and over https alone', async () => {
  expect(await redeem('/keys-elsewhere', await assertion('/keys-elsewhere'))).toMatchObject(REFUSED);
  expect(documents.asked.slice(-2)).toEqual(['/keys-elsewhere', '/moved']);
  const client = await registerRaw(spine.origin, { id: idOf('/keys-by-http') });
  const response = await fetch(client.authorizeUrl(), { redirect: 'manual' });
  expect([response.status, response.headers.get('location')]).toEqual([400, null]);
  expect(documents.asked.at(-1)).toBe('/keys-by-http');
});
