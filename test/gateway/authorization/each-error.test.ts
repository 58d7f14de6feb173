import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, register, registerRaw, type RawClient } from './support/raw-client.ts';

/*
 * Each error that the authorization server and the resources give a program: the request that provokes it, the status,
 * the code, and words that say what is wrong and what would be right. errors.test.ts has what an attacker would do.
 */

let spine: Spine;
let person: Person;
let client: RawClient;
let secret: { readonly client_id: string };
/** Tokens for `/mcp`, of another client. */
let tokens: { readonly access_token: string; readonly refresh_token?: string };
let pair: Awaited<ReturnType<typeof generateKeyPair>>;
let bound: { readonly access_token: string };
/** By how much the clock of the gateway is ahead. */
let ahead = 0;
beforeAll(async () => {
  spine = await startSpine({
    mode: 'development',
    toml: '[limits]\nanonymous_requests_per_minute = 1000\n',
    now: () => Date.now() + ahead,
  });
  person = createPerson(spine.origin, spine.key);
  pair = await generateKeyPair('ES256', { extractable: true });
  client = await registerRaw(spine.origin);
  secret = await register(spine.origin, { token_endpoint_auth_method: 'client_secret_basic' });
  tokens = await (await registerRaw(spine.origin)).signIn(person);
  const proof = await proofOf('POST', `${spine.origin}/oauth/token`);
  const grant = { grant_type: 'authorization_code', redirect_uri: RAW_CALLBACK, code_verifier: client.verifier };
  bound = (await client.token({ ...grant, code: (await code()).searchParams.get('code')! }, { dpop: proof })).body;
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
});

const code = async () => person.allow(await person.open(client.authorizeUrl()));
async function proofOf(method: string, url: string, claims: object = {}, keys = pair): Promise<string> {
  return new SignJWT({ htm: method, htu: url, jti: randomUUID(), iat: Math.floor(Date.now() / 1_000), ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: await exportJWK(keys.publicKey) })
    .sign(keys.privateKey);
}

/** undefined leaves a parameter out. */
type Changes = Readonly<Record<string, string | undefined>>;
interface Told {
  readonly status: number;
  readonly error: string;
  readonly says: RegExp;
  readonly headers?: Readonly<Record<string, RegExp>>;
}
type Row = readonly [what: string, send: () => Promise<Response>, told: Told];

const formOf = (fields: Changes) =>
  new URLSearchParams(
    Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
  ).toString();
const form = (path: string, fields: Changes, headers: object = {}, more = '') =>
  fetch(spine.origin + path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: formOf(fields) + more,
  });
const authorize =
  (changes: Changes, more = '') =>
  () =>
    fetch(client.authorizeUrl(changes) + more, { redirect: 'manual' });
const redeem =
  (changes: Changes, headers: object | (() => object | Promise<object>) = {}) =>
  async () => {
    const answer = await code();
    const fields = { client_id: client.id, code: answer.searchParams.get('code')!, redirect_uri: RAW_CALLBACK };
    const grant = { grant_type: 'authorization_code', code_verifier: client.verifier };
    const sent = typeof headers === 'function' ? await headers() : headers;
    return form('/oauth/token', { ...fields, ...grant, ...changes }, sent);
  };
const refresh = (changes: Changes) => async () => {
  const { refresh_token: token } = await client.signIn(person);
  return form('/oauth/token', { client_id: client.id, grant_type: 'refresh_token', refresh_token: token, ...changes });
};
/** The request for tokens with a parameter twice. */
const twice = async (parameter: string) => {
  const fields = { client_id: client.id, code: 'x', grant_type: 'authorization_code' };
  return form('/oauth/token', fields, {}, `&${parameter}=y`);
};
const registers = (body: unknown) => () =>
  fetch(`${spine.origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const calls =
  (headers: () => Promise<object> | object, path = '/mcp') =>
  async () =>
    fetch(spine.origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(await headers()) },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
});
const proven = (token: string, proof: (url: string) => Promise<string>) => async () => ({
  authorization: `DPoP ${token}`,
  dpop: await proof(`${spine.origin}/mcp`),
});

const NO_STORE = { 'cache-control': /^no-store$/, 'access-control-allow-origin': /^\*$/ };
const bad = (error: string, says: RegExp): Told => ({ status: 400, error, says, headers: NO_STORE });
const redirected = (error: string, says: RegExp): Told => ({ status: 303, error, says });
const OF_MCP =
  /^Bearer realm="tollgate".*scope="call", resource_metadata="http:\/\/127\.0\.0\.1:\d+\/\.well-known\/oauth-protected-resource\/mcp"/;
const refused = (says: RegExp, challenge: RegExp): Told => ({
  status: 401,
  error: 'unauthorized',
  says,
  headers: { 'www-authenticate': new RegExp(`(?=.*${OF_MCP.source.slice(1)})(?=.*${challenge.source})`) },
});

const TABLE: Readonly<Record<string, readonly Row[]>> = {
  'RFC 6749 section 4.1.2.1, with RFC 7636 and 9207: at the address of the client': [
    [
      'no response_type',
      authorize({ response_type: undefined }),
      redirected('invalid_request', /missing.*'response_type'/),
    ],
    [
      'a token at once',
      authorize({ response_type: 'token' }),
      redirected('unsupported_response_type', /must be code$/),
    ],
    [
      'a parameter twice',
      authorize({}, '&code_challenge=x'),
      redirected('invalid_request', /'code_challenge'.*must not be provided twice/),
    ],
    [
      'an unknown response_mode',
      authorize({ response_mode: 'x' }),
      redirected('unsupported_response_mode', /must be query/),
    ],
    [
      'no code_challenge',
      authorize({ code_challenge: undefined, code_challenge_method: undefined }),
      redirected('invalid_request', /^code_challenge is missing.*code_challenge_method=S256/),
    ],
    [
      'a plain challenge',
      authorize({ code_challenge_method: 'plain' }),
      redirected('invalid_request', /must be S256$/),
    ],
    [
      'no method of the challenge',
      authorize({ code_challenge_method: undefined }),
      redirected('invalid_request', /S256$/),
    ],
    ['a short challenge', authorize({ code_challenge: 'x' }), redirected('invalid_request', /minimum length of 43/)],
    [
      'a request in a JWT',
      authorize({ request: 'e30.e30.' }),
      redirected('request_not_supported', /send its parameters/),
    ],
    [
      'a request at an address',
      authorize({ request_uri: 'https://x.example/r' }),
      redirected('request_uri_not_supported', /send its parameters/),
    ],
    [
      'a registration in it',
      authorize({ registration: '{}' }),
      redirected('registration_not_supported', /register first/),
    ],
    ['prompt=none', authorize({ prompt: 'none' }), redirected('consent_required', /leave prompt=none out/)],
    [
      'a person who says no',
      async () => Response.redirect(await person.refuse(await person.open(client.authorizeUrl())), 303),
      redirected('access_denied', /The person said no/),
    ],
  ],
  'RFC 8707: resources': [
    [
      'another host',
      authorize({ resource: 'https://x.example' }),
      redirected('invalid_target', /such as http\S+\/mcp/),
    ],
    [
      'a fragment',
      authorize({ resource: 'http://x.example/#x' }),
      redirected('invalid_target', /such as http\S+\/mcp/),
    ],
    ['a path alone', authorize({ resource: '/mcp' }), redirected('invalid_target', /such as http\S+\/mcp/)],
    [
      'another host with the code',
      redeem({ resource: 'https://x.example' }),
      bad('invalid_target', /such as http\S+\/mcp/),
    ],
    [
      'an address that nobody agreed to',
      refresh({ resource: 'https://x.example' }),
      bad('invalid_target', /agreed to/),
    ],
  ],
  'RFC 6749 section 4.1.2.1: on a page, because no client may be told': [
    [
      'an unknown client',
      authorize({ client_id: 'nobody' }),
      { status: 400, error: 'invalid_client', says: /register again/ },
    ],
    [
      'no client',
      authorize({ client_id: undefined }),
      { status: 400, error: 'invalid_request', says: /missing.*'client_id'/ },
    ],
    [
      'an address that was not registered',
      authorize({ redirect_uri: 'https://evil.example/' }),
      { status: 400, error: 'invalid_redirect_uri', says: /letter by letter/ },
    ],
  ],
  'RFC 6749 section 5.2, with RFC 7636: of the token endpoint': [
    ['no grant_type', redeem({ grant_type: undefined }), bad('invalid_request', /missing.*'grant_type'/)],
    ['a password', redeem({ grant_type: 'password' }), bad('unsupported_grant_type', /must be authorization_code/)],
    ['no code', redeem({ code: undefined }), bad('invalid_request', /missing.*'code'/)],
    ['an unknown code', redeem({ code: 'x'.repeat(43) }), bad('invalid_grant', /^This code.*sign in again/)],
    ['no verifier', redeem({ code_verifier: undefined }), bad('invalid_grant', /code_verifier/)],
    ['a short verifier', redeem({ code_verifier: 'x' }), bad('invalid_request', /code_verifier.*minimum length of 43/)],
    ['a verifier of other letters', redeem({ code_verifier: '+'.repeat(43) }), bad('invalid_request', /code_verifier/)],
    ['another verifier', redeem({ code_verifier: 'x'.repeat(43) }), bad('invalid_grant', /code_verifier/)],
    ['another redirect_uri', redeem({ redirect_uri: 'http://x.example/' }), bad('invalid_grant', /redirect_uri/)],
    [
      'an unknown refresh token',
      refresh({ refresh_token: 'x' }),
      bad('invalid_grant', /^This refresh token.*sign in again/),
    ],
    ['no refresh token', refresh({ refresh_token: undefined }), bad('invalid_request', /missing.*'refresh_token'/)],
    ['more scopes at a refresh', refresh({ scope: 'call admin' }), bad('invalid_scope', /The only scope is "call"/)],
    ['no client', redeem({ client_id: undefined }), bad('invalid_request', /client_id is missing/)],
    ['an unknown client', redeem({ client_id: 'x' }), { ...bad('invalid_client', /register again/), status: 401 }],
    [
      'a secret that is wrong',
      redeem({ client_id: undefined }, () => basic(secret.client_id, 'wrong')),
      {
        status: 401,
        error: 'invalid_client',
        says: /secret or signed assertion is missing or wrong/,
        headers: { 'www-authenticate': /^Basic realm="http.*error="invalid_client"/ },
      },
    ],
    ['a code twice', () => twice('code'), bad('invalid_request', /'code' parameter must not be provided twice/)],
    [
      'a client twice',
      () => twice('client_id'),
      bad('invalid_request', /'client_id' parameter must not be provided twice/),
    ],
    ['a malformed header', redeem({}, { authorization: 'Basic x' }), bad('invalid_request', /authorization header/)],
    ['an assertion that is none', redeem({ client_assertion: 'x' }), bad('invalid_request', /client_assertion/)],
    [
      'a body of JSON',
      () => form('/oauth/token', {}, { 'content-type': 'application/json' }),
      bad('invalid_request', /urlencoded/),
    ],
    [
      'a page is accepted, but this is no page',
      redeem({ code: 'x' }, { accept: 'text/html' }),
      { ...bad('invalid_grant', /This code/), headers: { 'content-type': /^application\/json/ } },
    ],
    [
      'too large a body',
      redeem({ code: 'x'.repeat(2 ** 21) }),
      { ...bad('invalid_request', /too large/), status: 413 },
    ],
  ],
  'RFC 9449: proofs at the token endpoint': [
    ['a proof that is none', redeem({}, { dpop: 'x' }), bad('invalid_dpop_proof', /JWT of type dpop\+jwt/)],
    [
      'a proof for another address',
      redeem({}, async () => ({ dpop: await proofOf('POST', `${spine.origin}/mcp`) })),
      bad('invalid_dpop_proof', /for this method and address/),
    ],
  ],
  'RFC 7591 section 3.2.2: of a registration': [
    ['no address', registers({}), bad('invalid_redirect_uri', /must be a list of addresses/)],
    ['no list', registers({ redirect_uris: 'https://a.example/' }), bad('invalid_redirect_uri', /must be a list/)],
    ['http elsewhere', registers({ redirect_uris: ['http://a.example/'] }), bad('invalid_redirect_uri', /loopback/)],
    ['a script', registers({ redirect_uris: ['javascript:alert(1)'] }), bad('invalid_redirect_uri', /javascript/)],
    ['a fragment', registers({ redirect_uris: ['https://a.example/#x'] }), bad('invalid_redirect_uri', /fragments/)],
    ['another host, by ftp', registers({ redirect_uris: ['ftp://a.example/'] }), bad('invalid_redirect_uri', /https/)],
    [
      'a page of the gateway',
      () => registers({ redirect_uris: [`${spine.origin}/dashboard`] })(),
      bad('invalid_redirect_uri', /https/),
    ],
    ['a user', registers({ redirect_uris: ['https://a@b.example/'] }), bad('invalid_redirect_uri', /without a user/)],
    ['no JSON', registers('{'), bad('invalid_client_metadata', /not valid JSON/)],
    ['no object', registers('[]'), bad('invalid_client_metadata', /must be a JSON object/)],
  ],
  'RFC 7009 section 2.2.1: of a revocation': [
    [
      'no token',
      () => form('/oauth/revoke', { client_id: client.id }),
      { status: 400, error: 'invalid_request', says: /missing.*'token'/ },
    ],
    [
      'an unknown client',
      () => form('/oauth/revoke', { client_id: 'nobody', token: 'x' }),
      { status: 401, error: 'invalid_client', says: /register again/ },
    ],
  ],
  'RFC 6750 section 3 and RFC 9728: of a resource': [
    ['no token', calls(() => ({})), refused(/No API key/, /^(?!.*error=)/)],
    [
      'an unknown token',
      calls(() => ({ authorization: `Bearer ${'x'.repeat(43)}` })),
      refused(/unknown, has expired or was revoked/, /Bearer[^,]*, error="invalid_token"/),
    ],
    [
      'a token for another address',
      calls(() => ({ authorization: `Bearer ${tokens.access_token}` }), '/api/v1/chat/completions'),
      { status: 401, error: 'unauthorized', says: /it is only for http\S+\/mcp: ask for a token for this address/ },
    ],
  ],
  'RFC 9449 section 7.1: proofs at a resource': [
    [
      'a bound token without a proof',
      calls(() => ({ authorization: `Bearer ${bound.access_token}` })),
      refused(/needs DPoP/, /error="invalid_token".*DPoP algs="ES256 /),
    ],
    [
      'no proof',
      calls(() => ({ authorization: `DPoP ${bound.access_token}` })),
      refused(/proof: it is missing/, /DPoP error="invalid_dpop_proof", algs="ES256 /),
    ],
    [
      'a proof for another request',
      calls(() => proven(bound.access_token, (url) => proofOf('GET', url))()),
      refused(/is for another request/, /DPoP error="invalid_dpop_proof", algs="ES256 /),
    ],
    [
      'an unknown token',
      calls(() => proven('x'.repeat(43), (url) => proofOf('POST', url))()),
      refused(/unknown, has expired or was revoked/, /DPoP error="invalid_token", algs="ES256 /),
    ],
  ],
};

/** The error of an answer: in the address of the client, on a page, or in the body. */
async function read(response: Response): Promise<{ readonly error: string; readonly said: string }> {
  const location = response.headers.get('location');
  if (location !== null) {
    const url = new URL(location);
    expect(url.origin + url.pathname).toBe(RAW_CALLBACK);
    const parameters = url.search === '' ? new URLSearchParams(url.hash.slice(1)) : url.searchParams;
    expect(parameters.get('iss')).toBe(spine.origin);
    expect(parameters.get('state')).toBe('its-state');
    expect(parameters.get('code')).toBeNull();
    return { error: parameters.get('error')!, said: parameters.get('error_description')! };
  }
  const text = await response.text();
  const onPage = /<h1>This sign-in cannot go on<\/h1>\n<p>(.*)<\/p>[^]*<code>(\w+)<\/code>/.exec(text);
  if (onPage !== null) {
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const said = onPage[1]!.replaceAll(/&#(\d+);/g, (_all, code) => String.fromCharCode(Number(code)));
    return { error: onPage[2]!, said };
  }
  const { error, error_description: said } = JSON.parse(text) as { error: never; error_description?: string };
  if (said !== undefined) return { error, said };
  const { message, type, data } = error as { message: string; type?: string; data?: { type: string } };
  return { error: type ?? data!.type, said: message };
}

describe.each(Object.entries(TABLE))('%s', (_rfc, rows) => {
  test.each(rows)('%s', async (_what, send, told) => {
    const response = await send();
    const { error, said } = await read(response);
    expect([response.status, error, said]).toEqual([told.status, told.error, expect.stringMatching(told.says)]);
    for (const [name, value] of Object.entries(told.headers ?? {})) expect(response.headers.get(name)).toMatch(value);
  });
});

test('RFC 6750: a token that has expired is invalid, and the answer names the metadata', async () => {
  ahead = 60 * 60_000;
  const response = await calls(() => ({ authorization: `Bearer ${tokens.access_token}` }))();
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toMatch(OF_MCP);
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
});

test('RFC 8414 and RFC 9728, section 3.3: metadata name what they were asked for, and others are not there', async () => {
  for (const path of ['oauth-authorization-server', 'openid-configuration']) {
    const response = await fetch(`${spine.origin}/.well-known/${path}`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const { issuer, ...metadata } = (await response.json()) as Record<string, unknown>;
    expect(issuer).toBe(spine.origin);
    const places = Object.entries(metadata).filter(([name]) => /_endpoint$|_uri$/.test(name));
    expect(places.map(([name, place]) => [name, URL.parse(String(place))?.origin])).toEqual(
      places.map(([name]) => [name, spine.origin]),
    );
    expect(metadata).toMatchObject({
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    });
    // The issuer has no path.
    expect((await fetch(`${spine.origin}/.well-known/${path}/mcp`)).status).toBe(404);
  }
  for (const path of ['', '/mcp', '/mcp/acme/tools', '/a2a/acme/agent', '/api/v1']) {
    const response = await fetch(`${spine.origin}/.well-known/oauth-protected-resource${path}`);
    expect(await response.json()).toMatchObject({
      resource: spine.origin + path,
      authorization_servers: [spine.origin],
    });
  }
  const unknown = await fetch(`${spine.origin}/.well-known/oauth-protected-resource/dashboard`);
  expect([unknown.status, await unknown.text()]).toEqual([404, expect.stringContaining('not_found')]);
});
