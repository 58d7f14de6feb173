import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorPage } from '../../../src/gateway/authorization/error-page.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { createPerson, type Person } from './support/person.ts';
import { RAW_CALLBACK, register, registerRaw, type RawClient } from './support/raw-client.ts';

let spine: Spine;
let person: Person;
let client: RawClient;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development', toml: '[limits]\nanonymous_requests_per_minute = 1000\n' });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin);
});
afterAll(() => spine.stop());

describe('errors that no client may be told', () => {
  test.each([
    ['an unknown client', { client_id: 'nobody' }, 'invalid_client'],
    ['no client', { client_id: undefined }, 'invalid_request'],
    ['another address', { redirect_uri: 'https://evil.example/callback' }, 'invalid_redirect_uri'],
    ['a longer path', { redirect_uri: `${RAW_CALLBACK}/more` }, 'invalid_redirect_uri'],
    ['a query', { redirect_uri: `${RAW_CALLBACK}?more` }, 'invalid_redirect_uri'],
    [
      'localhost for 127.0.0.1',
      { redirect_uri: RAW_CALLBACK.replace('127.0.0.1', 'localhost') },
      'invalid_redirect_uri',
    ],
    [
      'a user in the address',
      { redirect_uri: RAW_CALLBACK.replace('http://', 'http://127.0.0.1:7878@evil.example/') },
      'invalid_redirect_uri',
    ],
    ['another scheme', { redirect_uri: 'javascript:alert(1)' }, 'invalid_redirect_uri'],
    [
      'markup',
      { redirect_uri: 'https://x/<script>alert(1)</script>', client_id: '<script>alert(1)</script>' },
      'invalid_client',
    ],
  ])('%s', async (_what, changes, error) => {
    const response = await fetch(client.authorizeUrl(changes), { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const page = await response.text();
    expect(page).toContain(`<code>${error}</code>`);
    // The browser runs nothing, and takes no other style than that of the page.
    expect(page).not.toContain('<script');
    const [, style] = /<style>(.*)<\/style>/.exec(page)!;
    const own = createHash('sha256').update(style!).digest('base64');
    expect(response.headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${own}'; base-uri 'none'; frame-ancestors 'none'`,
    );
  });

  test('a browser gets a page also where the library was not asked, and no words of strangers as markup', async () => {
    const response = await fetch(`${spine.origin}/oauth/authorize/x?mark=x`, { headers: { accept: 'text/html' } });
    expect([response.status, response.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(await response.text()).toContain('<p>This sign-in is over, or it was begun in another browser');
    expect(await (await fetch(`${spine.origin}/oauth/authorize/x?mark=x`)).json()).toMatchObject({
      error: expect.any(String),
    });
    expect(errorPage('a<b', 'c<d>"&')).toMatch(/<p>c&#60;d&#62;&#34;&#38;<\/p>[^]*<code>a&#60;b<\/code>/);
  });

  test('another port of loopback is no error (RFC 8252)', async () => {
    const page = await person.open(client.authorizeUrl({ redirect_uri: RAW_CALLBACK.replace('7878', '51515') }));
    expect(page.pathname).toMatch(/^\/authorize\//);
  });
});

describe('errors of the token endpoint (RFC 6749 section 5.2)', () => {
  const code = async () => person.allow(await person.open(client.authorizeUrl()));

  test('the code of another client (code injection)', async () => {
    const answer = await code();
    const thief = await registerRaw(spine.origin);
    const stolen = await thief.redeem(answer, { code_verifier: client.verifier });
    expect(stolen).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect((await client.redeem(answer)).status).toBe(200);
  });

  test('a wrong secret', async () => {
    const { client_id: id, client_secret: secret } = await register(spine.origin, {
      token_endpoint_auth_method: 'client_secret_post',
    });
    const confidential = await registerRaw(spine.origin, { id });
    const answer = await person.allow(await person.open(confidential.authorizeUrl()));
    expect(await confidential.redeem(answer)).toMatchObject({ body: { error: 'invalid_client' } });
    expect(await confidential.redeem(answer, { client_secret: 'wrong' })).toMatchObject({
      status: 401,
      body: { error: 'invalid_client' },
    });
    expect((await confidential.redeem(answer, { client_secret: secret })).status).toBe(200);
  });

  test('an answer with tokens is never stored by a cache', async () => {
    const answer = await code();
    const response = await fetch(`${spine.origin}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        client_id: client.id,
        grant_type: 'authorization_code',
        code: answer.searchParams.get('code')!,
        redirect_uri: RAW_CALLBACK,
        code_verifier: client.verifier,
      }).toString(),
    });
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
  });
});

describe('errors of registration (RFC 7591 section 3.2.2)', () => {
  const post = (body: unknown) =>
    fetch(`${spine.origin}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  test('what this server does not have is left out, and the client works', async () => {
    const response = await post({
      redirect_uris: [RAW_CALLBACK],
      client_name: 'Asks for much',
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
      response_types: ['code', 'token'],
      scope: 'openid profile everything',
      token_endpoint_auth_method: 'tls_client_auth',
      software_id: 'x',
    });
    expect(response.status).toBe(201);
    const { client_id: id, ...registered } = (await response.json()) as { readonly client_id: string };
    expect(registered).toMatchObject({
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    });
    const registeredClient = await registerRaw(spine.origin, { id });
    expect(await registeredClient.signIn(person)).toMatchObject({ token_type: 'Bearer' });
  });
});
