import { beforeEach, describe, expect, test } from 'vitest';
import { earningsOf } from '#billing';
import { createKey } from '#auth';
import { sendRaw } from '../support/raw-http.ts';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// Who may call: every form of presenting a key, and every way in which a key is none.

let skew = 0;
const spine = spineOfFile(() => ({ toml: UNHURRIED, now: () => Date.now() + skew }));
beforeEach(() => {
  spine.provider.log.length = 0;
});

const chat = (headers: Record<string, string>) =>
  fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(ask('hello')),
  });
const whoami = (headers: Record<string, string>) => fetch(`${spine.url}/key`, { headers });

/** The answer to every key that is none. */
const REFUSAL = { error: { message: 'Invalid API key', type: 'unauthorized', code: 401, param: null } };

async function expectRefused(response: Response): Promise<void> {
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
  expect(await response.json()).toEqual(REFUSAL);
}

describe('a key is taken', () => {
  test.each([
    ['as bearer', (key: string) => ({ authorization: `Bearer ${key}` })],
    ['with a lower-case scheme', (key: string) => ({ authorization: `bearer ${key}` })],
    ['with an upper-case scheme', (key: string) => ({ authorization: `BEARER ${key}` })],
    ['with spaces after the scheme', (key: string) => ({ authorization: `Bearer   ${key}  ` })],
    ['as x-api-key', (key: string) => ({ 'x-api-key': key })],
    ['in both headers', (key: string) => ({ authorization: `Bearer ${key}`, 'x-api-key': key })],
    ['as x-api-key beside a dummy bearer', (key: string) => ({ authorization: 'Bearer siwx', 'x-api-key': key })],
    ['as bearer beside a dummy x-api-key', (key: string) => ({ authorization: `Bearer ${key}`, 'x-api-key': 'dummy' })],
  ])('%s', async (_name, headers) => {
    expect((await chat(headers(spine.key))).status).toBe(200);
    expect((await whoami(headers(spine.key))).status).toBe(200);
  });
});

describe('a key that is none gets the same answer, whatever is wrong with it', () => {
  const mutate = (key: string, at: number) => key.slice(0, at) + (key[at] === 'a' ? 'b' : 'a') + key.slice(at + 1);
  test.each([
    ['well formed and unknown', () => createKey('live').text],
    ['mistyped in one place', () => mutate(spine.key, 20)],
    ['mistyped at its end', () => mutate(spine.key, spine.key.length - 1)],
    ['cut off', () => spine.key.slice(0, -1)],
    ['too long', () => `${spine.key}a`],
    ['100 kB long', () => `svc-sk-v2-${'z'.repeat(16_000)}`],
    ['of another service', () => ['sk', 'proj', 'x'.repeat(40)].join('-')],
    ['the prefix alone', () => 'svc-sk-v2-'],
    ['digits that base58 does not have', () => 'svc-sk-v2-0OIl'],
    ['the admin key', () => spine.adminKey],
    ['in another case', () => spine.key.toUpperCase()],
    [
      'the hash of a key',
      async () =>
        ((await (await whoami({ authorization: `Bearer ${spine.key}` })).json()) as { data: { hash: string } }).data
          .hash,
    ],
  ])('%s', async (_name, make) => {
    const key = await make();
    await expectRefused(await chat({ authorization: `Bearer ${key}` }));
    await expectRefused(await chat({ 'x-api-key': key }));
    expect(spine.provider.log).toHaveLength(0);
  });

  test('deleted: at once', async () => {
    const { key, hash } = await spine.tenant('leaver', '1');
    expect((await chat({ 'x-api-key': key })).status).toBe(200);
    expect((await fetch(`${spine.url}/keys/${hash}`, { method: 'DELETE', headers: { 'x-api-key': key } })).status).toBe(
      200,
    );
    await expectRefused(await chat({ 'x-api-key': key }));
  });

  test('deleted by another gateway on the same database: within a second', async () => {
    const { key, hash } = await spine.tenant('elsewhere', '1');
    expect((await chat({ 'x-api-key': key })).status).toBe(200);
    await spine.app.database.query({ name: 'test/delete-key', text: 'DELETE FROM api_keys WHERE hash = $1' }, [hash]);
    skew += 1_000;
    await expectRefused(await chat({ 'x-api-key': key }));
  });

  test('disabled, and taken again once enabled', async () => {
    const { key, hash } = await spine.tenant('sleeper', '1');
    const boss = await spine.tenant('sleeper', '0');
    const patch = (disabled: boolean) =>
      fetch(`${spine.url}/keys/${hash}`, {
        method: 'PATCH',
        headers: { 'x-api-key': boss.key, 'content-type': 'application/json' },
        body: JSON.stringify({ disabled }),
      });
    expect((await patch(true)).status).toBe(200);
    await expectRefused(await chat({ 'x-api-key': key }));
    expect((await patch(false)).status).toBe(200);
    expect((await chat({ 'x-api-key': key })).status).toBe(200);
  });

  test('expired: at the very time', async () => {
    const { key } = await spine.tenant('guest', '1', { expiresAt: Date.now() + skew + 60_000 });
    expect((await chat({ 'x-api-key': key })).status).toBe(200);
    skew += 60_000;
    await expectRefused(await chat({ 'x-api-key': key }));
  });

  test('a development key in production', async () => {
    const { key } = await spine.tenant('player', '1', { kind: 'development' });
    expect(key).toMatch(/^svc-sk-dev-/);
    await expectRefused(await chat({ 'x-api-key': key }));
  });
});

describe('without a key, or in a form that cannot be one, the answer tells how', () => {
  test.each([
    ['none', {}],
    ['an empty header', { authorization: '' }],
    ['a scheme alone', { authorization: 'Bearer' }],
    ['basic', { authorization: 'Basic dXNlcjpwYXNz' }],
    ['a bare key', { authorization: 'svc-sk-v2-abc' }],
    ['an empty x-api-key', { 'x-api-key': '' }],
  ])('%s', async (_name, headers) => {
    const response = await chat(headers);
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { type: 'unauthorized', code: 401 } });
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
  });

  test('two different keys', async () => {
    const { key } = await spine.tenant('double', '1');
    const response = await chat({ authorization: `Bearer ${spine.key}`, 'x-api-key': key });
    expect(response.status).toBe(401);
  });

  test.each(['authorization: Bearer ', 'x-api-key: '])('the header %s twice', async (header) => {
    const line = header + spine.key;
    const answer = await sendRaw(spine.origin, `GET /api/v1/key HTTP/1.1\r\nhost: x\r\n${line}\r\n${line}\r\n\r\n`);
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { type: 'unauthorized' } });
  });
});

test('authentication comes before the body is looked at', async () => {
  const response = await fetch(`${spine.url}/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': 'wrong', 'content-type': 'text/plain' },
    body: '{',
  });
  await expectRefused(response);
});

test('a revoked key in the middle of its stream lets the stream finish', async () => {
  const { key, hash, account } = await spine.tenant('runner', '1');
  const response = await spine.post('/chat/completions', ask('hello !tokens:10 !token-ms:15', { stream: true }), {
    authorization: `Bearer ${key}`,
  });
  await spine.app.keys.delete(account, hash);
  expect(await response.text()).toContain('[DONE]');
  const provider = spine.app.catalog.offers()[0]!.provider.id;
  expect((await spine.app.ledger.balance(earningsOf(provider)))!.available).toBeGreaterThan(0n);
});
