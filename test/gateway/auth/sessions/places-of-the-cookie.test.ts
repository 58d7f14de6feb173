import { beforeAll, describe, expect, test } from 'vitest';
import { ask, startSpine } from '../../../support/spine.ts';
import { openSocket, readAnswer } from '../../../support/raw-http.ts';
import { openBrowser, plainCookie, type Browser } from './browser.ts';
import { spineOfFile } from '../../../support/of-file.ts';

let browser: Browser;
let cookie: string;
const spine = spineOfFile();
beforeAll(async () => {
  browser = openBrowser(spine.origin);
  await browser.ask('POST', '/api/v1/auth/session', { api_key: spine.key });
  cookie = browser.cookie!;
});

describe('the cookie counts nothing for the protocols of programs', () => {
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const send = { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} };
  const chat = { jsonrpc: '2.0', id: 1, method: 'chat/completions', params: ask('hello') };
  test.each([
    ['/mcp', list],
    ['/mcp/any', list],
    ['/api/v1/mcp', list],
    ['/a2a', send],
    ['/a2a/any', send],
    ['/api/v1/a2a/any', send],
    ['/api/v1/rpc', chat],
  ])('%s', async (path, body) => {
    const accept = 'application/json, text/event-stream';
    const before = await spine.locks();
    const answer = await browser.ask('POST', path, body, { accept });
    expect(answer.body.data).toBeUndefined();
    expect(JSON.stringify(answer.body)).toMatch(/API key|credential|sign in/i);
    expect(await spine.locks()).toEqual(before);
  });

  test('the tunnel of providers', async () => {
    const socket = await openSocket(spine.origin);
    const answer = readAnswer(socket);
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
    socket.write(
      `GET /api/v1/provider/tunnel HTTP/1.1\r\nHost: 127.0.0.1\r\n${upgrade}${key}Cookie: ${cookie}\r\nSec-Fetch-Site: same-origin\r\nX-Tollgate-Web: 1\r\n\r\n`,
    );
    const { status } = await answer;
    socket.destroy();
    expect(status).toBeGreaterThanOrEqual(400);
  });
});

test('any other credential beats the cookie, also a wrong one', async () => {
  const { key, account } = await spine.tenant('other', '0');
  const balanceAs = (headers: Record<string, string>) =>
    browser.ask('GET', '/api/v1/session/balance', undefined, headers);
  expect((await balanceAs({ authorization: `Bearer ${key}` })).body['caip_account_id']).toBe(account);
  expect((await balanceAs({ 'x-api-key': key })).body['caip_account_id']).toBe(account);
  expect((await balanceAs({ authorization: 'Bearer svc-sk-v2-wrong' })).status).toBe(401);
  expect((await balanceAs({ authorization: 'Basic abc' })).status).toBe(401);
  expect((await balanceAs({ 'sign-in-with-x': 'wrong' })).status).toBe(401);
});

test('two cookies of the name are refused: one of them was planted', async () => {
  for (const both of [`${cookie}; ${plainCookie(spine.origin)}`, `${plainCookie(spine.origin, 'x')}; ${cookie}`]) {
    const { status, body } = await browser.ask('GET', '/api/v1/keys', undefined, { cookie: both });
    expect([status, body.error?.message]).toEqual([401, expect.stringContaining('Two session cookies')]);
  }
  expect(
    (await browser.ask('GET', '/api/v1/keys', undefined, { cookie: `my-${plainCookie(spine.origin)}; ${cookie}; a=b` }))
      .status,
  ).toBe(200);
});

test.each(['', 'short', '%00', 'A'.repeat(44)])('a cookie with "%s" is no session', async (secret) => {
  const text = plainCookie(spine.origin, secret);
  expect((await browser.ask('GET', '/api/v1/keys', undefined, { cookie: text })).status).toBe(401);
});

test.each([
  ['without its value', (name: string) => name],
  ['in other letters', (name: string) => `${name.replace('t', 'T')}=${'A'.repeat(43)}`],
  ['of another port', (name: string) => `${name}1=${'A'.repeat(43)}`],
  ['of an operator', (name: string) => `${name.replace('tollgate', 'tollgate-admin')}=${'A'.repeat(43)}`],
  ['of a stranger', () => 'about=tollgate'],
])('a cookie %s is as none', async (_which, cookieOf) => {
  const text = cookieOf(plainCookie(spine.origin).split('=')[0]!);
  const { status, body, headers } = await browser.ask('GET', '/api/v1/keys', undefined, { cookie: text });
  expect([status, body.error?.message]).toEqual([401, expect.stringContaining('No API key')]);
  expect(headers['cache-control']).toBeUndefined();
});

test('nobody between keeps the answer to a cookie', async () => {
  for (const path of ['/api/v1/keys', '/api/v1/session/balance', '/api/v1/no-such-thing'])
    expect((await browser.ask('GET', path)).headers['cache-control']).toBe(
      path.endsWith('thing') ? undefined : 'private, no-store',
    );
});

test('whoever guesses cookies is soon not heard any more', async () => {
  const guessed = await startSpine({ toml: '[sign_in]\nfailures_per_minute = 3\n' });
  try {
    const guesser = openBrowser(guessed.origin);
    const guess = async (letter: string) =>
      (
        await guesser.ask('GET', '/api/v1/keys', undefined, {
          cookie: plainCookie(guessed.origin, letter.repeat(43)),
        })
      ).status;
    expect([await guess('a'), await guess('b'), await guess('c'), await guess('d')]).toEqual([401, 401, 401, 429]);
    const { status } = await guesser.ask('POST', '/api/v1/auth/session', { api_key: guessed.key });
    expect(status).toBe(429);
  } finally {
    await guessed.stop();
  }
});

test('over https the cookie is for this host alone, and one without the prefix counts nothing', async () => {
  const secure = await startSpine({ toml: '[server]\npublic_url = "https://gate.example"\n' });
  try {
    const page = openBrowser(secure.origin);
    const signedIn = await page.ask('POST', '/api/v1/auth/session', { api_key: secure.key });
    expect(signedIn.cookie).toMatch(
      /^__Host-tollgate=[A-Za-z0-9_-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=604800$/,
    );
    expect((await page.ask('GET', '/api/v1/keys')).status).toBe(200);
    const plain = plainCookie(secure.origin, page.cookie!.split('=')[1]);
    expect((await page.ask('GET', '/api/v1/keys', undefined, { cookie: plain })).status).toBe(401);
    const beside = `${page.cookie!}; ${plainCookie(secure.origin)}`;
    expect((await page.ask('GET', '/api/v1/keys', undefined, { cookie: beside })).status).toBe(200);
  } finally {
    await secure.stop();
  }
});

describe('https that a proxy ends whom the operator has not named', () => {
  const SITE = { host: 'gate.example', origin: 'https://gate.example' };

  test('the cookie is for https alone, and counts', async () => {
    const page = openBrowser(spine.origin);
    const { cookie: set } = await page.ask('POST', '/api/v1/auth/session', { api_key: spine.key }, SITE);
    expect(set).toMatch(/^__Host-tollgate=[A-Za-z0-9_-]{43}; Path=\/; Secure; /);
    // No Origin comes with the GET of an own page. A planted cookie of an http page counts nothing beside it.
    const cookies = `tollgate=${'A'.repeat(43)}; ${page.cookie!}`;
    const asked = { host: SITE.host, cookie: cookies };
    expect((await page.ask('GET', '/api/v1/keys', undefined, asked)).status).toBe(200);
    const { cookie: removed } = await page.ask('DELETE', '/api/v1/auth/session', undefined, { host: SITE.host });
    expect(removed).toMatch(/^__Host-tollgate=; Path=\/; Secure; /);
  });
});

test('where the browser would drop the cookie, the sign-in says so', async () => {
  const secure = await startSpine({ toml: '[server]\npublic_url = "https://gate.example"\n' });
  try {
    const page = openBrowser(secure.origin);
    const plain = { origin: 'http://gate.example' };
    const { status, body } = await page.ask('POST', '/api/v1/auth/session', { api_key: secure.key }, plain);
    expect([status, body.error?.message]).toEqual([400, expect.stringContaining('open https://gate.example')]);
    const asOperator = { ...plain, authorization: `Bearer ${secure.adminKey}` };
    expect((await page.ask('POST', '/admin/v1/session', undefined, asOperator)).status).toBe(400);
  } finally {
    await secure.stop();
  }
});
