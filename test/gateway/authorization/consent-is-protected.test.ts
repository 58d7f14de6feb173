import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { evmWallet, signInHeaders } from '../../support/wallets.ts';
import { A_BUDGET, createPerson, type Person } from './support/person.ts';
import { registerRaw, type RawClient } from './support/raw-client.ts';

/* Who may answer for a person, and what the answer must have. */

let spine: Spine;
let person: Person;
let client: RawClient;
beforeAll(async () => {
  spine = await startSpine({ mode: 'development', toml: '[limits]\nanonymous_requests_per_minute = 1000\n' });
  person = createPerson(spine.origin, spine.key);
  client = await registerRaw(spine.origin);
});
afterAll(() => spine.stop());

const keysOf = async (): Promise<number> =>
  ((await (await spine.get('/keys')).json()) as { data: unknown[] }).data.length;
const byKey = (key = spine.key) => ({ authorization: `Bearer ${key}` });

test('another browser can neither see, allow nor refuse a sign-in, even if it knows the address', async () => {
  const page = await person.open(client.authorizeUrl());
  const other = createPerson(spine.origin, spine.key);
  const before = await keysOf();
  for (const response of [
    await other.look(page),
    await other.send('POST', page, A_BUDGET, byKey()),
    await other.send('DELETE', page),
  ])
    expect(response.status).toBe(404);
  expect(await keysOf()).toBe(before);
  expect((await client.redeem(await person.allow(page))).status).toBe(200);
});

test('a cookie of one sign-in is none of another', async () => {
  const [one, other] = [await person.open(client.authorizeUrl()), await person.open(client.authorizeUrl())];
  // Both go on beside each other in one browser.
  expect((await client.redeem(await person.allow(one))).status).toBe(200);
  expect((await client.redeem(await person.allow(other))).status).toBe(200);
});

test('whoever plants the cookie of a sign-in of theirs in your browser does not get your answer', async () => {
  const begun = await fetch(client.authorizeUrl(), { redirect: 'manual' });
  const theirs = begun.headers.getSetCookie().map((line) => line.split(';', 1)[0]!);
  const page = new URL(begun.headers.get('location')!, spine.origin);
  const planted = theirs.filter((cookie) => cookie.startsWith('tollgate-asked')).join('; ');
  expect((await person.send('POST', page, A_BUDGET, { ...byKey(), cookie: planted })).status).toBe(200);
  const goOn = page.pathname.replace('/authorize/', '/oauth/authorize/');
  for (const mark of ['', '?mark=', '?mark=x', `?mark=${'A'.repeat(43)}`]) {
    const headers = { cookie: theirs.join('; ') };
    const response = await fetch(spine.origin + goOn + mark, { redirect: 'manual', headers });
    expect([response.status, response.headers.get('location')]).toEqual([404, null]);
    expect(await response.text()).toContain('begun in another browser');
  }
});

test('no answer of the authorization server is shown in a frame, and none tells where it came from', async () => {
  for (const url of [
    client.authorizeUrl(),
    client.authorizeUrl({ client_id: 'nobody' }),
    // A form that sends itself to the client.
    client.authorizeUrl({ response_mode: 'form_post', response_type: 'token' }),
  ]) {
    const { headers } = await fetch(url, { redirect: 'manual' });
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; ?(?:script-src(?: 'sha256-\S+')?|style-src 'sha256-\S+'); ?base-uri 'none'; ?frame-ancestors 'none'$/,
    );
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

test('a page of another site can answer nothing (CSRF)', async () => {
  const page = await person.open(client.authorizeUrl());
  const before = await keysOf();
  for (const headers of [
    { origin: 'https://evil.example', ...byKey() },
    { 'sec-fetch-site': 'cross-site', ...byKey() },
    { 'sec-fetch-site': 'same-site', ...byKey() },
    { 'x-tollgate-web': '', ...byKey() },
  ]) {
    expect((await person.send('POST', page, A_BUDGET, headers)).status).toBe(403);
    expect((await person.send('DELETE', page, undefined, headers)).status).toBe(403);
  }
  expect(await keysOf()).toBe(before);
});

test('without a credential, and with a limited key, nobody agrees', async () => {
  const page = await person.open(client.authorizeUrl());
  const limited = await spine.post('/keys', { label: 'limited', limit: 1 });
  const { key } = (await limited.json()) as { readonly key: string };
  const before = await keysOf();
  expect((await person.send('POST', page, A_BUDGET)).status).toBe(401);
  expect((await person.send('POST', page, A_BUDGET, byKey(key))).status).toBe(403);
  expect(await keysOf()).toBe(before);
});

test("a program's own token agrees to nothing", async () => {
  const whole = await registerRaw(spine.origin, { resource: spine.origin });
  const { access_token: token } = await whole.signIn(person);
  const page = await person.open(client.authorizeUrl());
  expect((await person.send('POST', page, A_BUDGET, byKey(token))).status).toBe(403);
});

test("a browser's session needs a proof beside its cookie", async () => {
  const signedIn = await fetch(`${spine.url}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-tollgate-web': '1', origin: spine.origin },
    body: JSON.stringify({ api_key: spine.key }),
  });
  const cookie = signedIn.headers.getSetCookie()[0]!.split(';', 1)[0]!;
  const page = await person.open(client.authorizeUrl());
  const response = await person.send('POST', page, A_BUDGET, { cookie });
  expect([response.status, await response.text()]).toEqual([401, expect.stringContaining('A session is not enough')]);
});

test('a wallet signs for it, once, with a nonce of the gateway', async () => {
  const wallet = evmWallet();
  const page = await person.open(client.authorizeUrl());
  expect((await person.send('POST', page, A_BUDGET, await signInHeaders(wallet, {}))).status).toBe(401);
  const { nonce } = (await (await fetch(`${spine.url}/auth/nonce`)).json()) as { readonly nonce: string };
  const signed = await signInHeaders(wallet, { nonce });
  const response = await person.send('POST', page, A_BUDGET, signed);
  expect(response.status).toBe(200);
  const { redirect_to: next } = (await response.json()) as { readonly redirect_to: string };
  expect((await client.redeem(await person.open(next))).status).toBe(200);
  const again = await person.open(client.authorizeUrl());
  expect((await person.send('POST', again, A_BUDGET, signed)).status).toBe(401);
});

test.each([
  ['no budget', { limit: null }, 'limit'],
  ['a budget that refuses nothing', { limit_soft: true }, 'limit_soft'],
  ['no end', { expires_at: null }, 'expires_at'],
  ['an end in the past', { expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
  ['an end in ten years', { expires_at: '2036-12-01T00:00:00Z' }, 'expires_at'],
  ['a negative budget', { limit: -1 }, 'limit'],
])('%s is refused, and the sign-in goes on', async (_what, changes, param) => {
  const page = await person.open(client.authorizeUrl());
  const before = await keysOf();
  const response = await person.send('POST', page, { ...A_BUDGET, ...changes }, byKey());
  expect([response.status, await response.json()]).toEqual([400, { error: expect.objectContaining({ param }) }]);
  expect(await keysOf()).toBe(before);
  expect((await client.redeem(await person.allow(page))).status).toBe(200);
});

test('an answer counts once', async () => {
  const page = await person.open(client.authorizeUrl());
  expect((await person.send('POST', page, A_BUDGET, byKey())).status).toBe(200);
  expect((await person.send('POST', page, A_BUDGET, byKey())).status).toBe(404);
  expect((await person.send('DELETE', page)).status).toBe(404);
});

test('a program calls only the services that the person chose', async () => {
  const api = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
  const { access_token: token } = await api.signIn(person, {
    limits: { ...A_BUDGET, allowed_services: ['another/model'] },
  });
  const response = await fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { ...byKey(token), 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/model', messages: [{ role: 'user', content: 'hello' }] }),
  });
  expect(response.status).toBe(403);
  expect(await spine.faults()).toEqual([]);
});
