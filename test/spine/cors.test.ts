import { afterEach, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

const APP = 'https://app.example';
const BODY = JSON.stringify({ model: 'demo/chat', messages: [{ role: 'user', content: 'Hi' }] });

let spine: Spine;
afterEach(async () => {
  await spine.stop();
});

const start = async (origins: string) => {
  spine = await startSpine({ toml: `${UNHURRIED}\n[server]\ncors_origins = ${origins}\n` });
};
const preflight = (origin: string, path = '/api/v1/chat/completions', method = 'POST') =>
  fetch(`${spine.origin}${path}`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization,content-type',
    },
  });
const call = (origin: string, body = BODY, path = '/chat/completions') =>
  fetch(`${spine.origin}/api/v1${path}`, {
    method: 'POST',
    headers: { origin, authorization: `Bearer ${spine.key}`, 'content-type': 'application/json' },
    body,
  });

test('without origins no page is let in', async () => {
  await start('[]');
  for (const reply of [await preflight(APP), await call(APP)])
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
});

test('a listed page is let in, also where its call fails; another is not', async () => {
  await start(`["${APP}", "https://second.example"]`);
  const asked = await preflight(APP);
  expect(asked.status).toBe(204);
  expect(asked.headers.get('access-control-allow-origin')).toBe(APP);
  expect(asked.headers.get('access-control-allow-headers')).toBe('authorization,content-type');
  expect(asked.headers.get('access-control-allow-methods')).toContain('POST');
  for (const [body, path] of [
    [BODY],
    [BODY.replace('{', '{"stream":true,')],
    ['{"model":1}'],
    [BODY.replace('{', '{"max_tokens":9,'), '/messages'],
    [BODY, '/messages'],
  ]) {
    const reply = await call(APP, body, path);
    expect(reply.headers.get('access-control-allow-origin'), await reply.text()).toBe(APP);
    expect(reply.headers.get('vary')).toContain('Origin');
    const exposed = reply.headers.get('access-control-expose-headers')!.toLowerCase().split(', ');
    const own = [...reply.headers.keys()].filter((name) => /^x-(?!content-type-options|accel)|^request-id/.test(name));
    expect(own).toContain('x-request-id');
    expect(exposed).toEqual(expect.arrayContaining(own));
    expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
  }
  for (const reply of [await preflight('https://evil.example'), await call('https://evil.example')])
    expect(reply.headers.get('access-control-allow-origin')).toBeNull();
});

test('a listed page may call MCP as well', async () => {
  await start(`["${APP}"]`);
  const list = (origin: string) =>
    fetch(`${spine.origin}/mcp`, {
      method: 'POST',
      headers: {
        origin,
        authorization: `Bearer ${spine.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
    });
  const reply = await list(APP);
  expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([200, APP]);
  expect((await list('https://evil.example')).status).toBe(403);
});

test('with * every page is let in, and paths that do not exist stay 404', async () => {
  await start('["*"]');
  expect((await preflight('https://any.example')).headers.get('access-control-allow-origin')).toBe('*');
  const reply = await fetch(`${spine.origin}/nowhere`, { headers: { origin: 'https://any.example' } });
  expect([reply.status, reply.headers.get('access-control-allow-origin')]).toEqual([404, '*']);
});

const FOR_ANY_PAGE: readonly (readonly [method: string, path: string, status: number])[] = [
  ['GET', '/.well-known/oauth-protected-resource', 200],
  ['GET', '/.well-known/oauth-protected-resource/mcp/acme/tools', 200],
  ['GET', '/.well-known/oauth-authorization-server', 200],
  ['GET', '/.well-known/openid-configuration', 200],
  ['GET', '/.well-known/jwks.json', 200],
  ['GET', '/.well-known/agent-card.json', 200],
  ['GET', '/a2a/nobody/.well-known/agent-card.json', 404],
  ['GET', '/openapi.json', 200],
  ['GET', '/oauth/jwks', 200],
  ['POST', '/oauth/register', 400],
  ['POST', '/oauth/token', 400],
  ['POST', '/oauth/revoke', 400],
];

test.each(['[]', `["${APP}"]`])(
  'every page can sign in and read what is public anyway, whatever pages are listed: %s',
  async (origins) => {
    spine = await startSpine({ mode: 'development', toml: `${UNHURRIED}\n[server]\ncors_origins = ${origins}\n` });
    for (const origin of [APP, 'https://another.example'])
      for (const [method, path, status] of FOR_ANY_PAGE) {
        const asked = await preflight(origin, path, method);
        const { headers } = asked;
        const allowed = [headers.get('access-control-allow-origin'), headers.get('access-control-allow-headers')];
        expect([path, asked.status, ...allowed]).toEqual([path, 204, '*', 'authorization,content-type']);
        expect(headers.get('access-control-allow-methods')?.split(', ')).toContain(method);
        const reply = await fetch(`${spine.origin}${path}`, { method, headers: { origin } });
        expect([path, reply.status]).toEqual([path, status]);
        // The library names the page where it answers itself.
        expect(['*', origin]).toContain(reply.headers.get('access-control-allow-origin'));
        expect(reply.headers.get('access-control-allow-credentials')).toBeNull();
      }
  },
);
