import { expect, test } from 'vitest';
import { fill, routesOf } from '../support/route-table.ts';
import { UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// HTTP as clients, load balancers and link checkers expect it: HEAD wherever GET is, 405 with Allow, OPTIONS.

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

const ask = (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${spine.origin}${path}`, { method, headers: { authorization: `Bearer ${spine.key}`, ...headers } });

test.each([
  '/',
  '/api/v1/models',
  '/api/v1/ping',
  '/health/live',
  '/health/ready',
  '/openapi.json',
  '/llms.txt',
  '/api/v1/session/balance',
])('HEAD %s is GET without a body', async (path) => {
  // The length of a compressed answer is that of its compressed bytes.
  const plain = { 'accept-encoding': 'identity' };
  const [get, head] = [await ask('GET', path, plain), await ask('HEAD', path, plain)];
  expect(head.status).toBe(get.status);
  expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
  expect(Number(head.headers.get('content-length'))).toBe(Buffer.byteLength(await get.text()));
  expect(await head.text()).toBe('');
});

test('a method that a path does not take is 405, and Allow lists those that it takes', async () => {
  const byPath = new Map<string, Set<string>>();
  for (const { method, path } of routesOf(spine.app.server)) {
    // Pages of the reference have a handler of their own for what is not there.
    if (path.includes('.well-known/agent-card') || path.startsWith('/docs/')) continue;
    const methods = byPath.get(path) ?? new Set();
    byPath.set(path, methods.add(method));
  }
  let checked = 0;
  for (const [path, methods] of byPath) {
    const missing = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].find((method) => !methods.has(method));
    if (missing === undefined) continue;
    const reply = await ask(missing, fill(path, { '*': 'x' }));
    // A neighbour with a parameter may take it: GET /deposits/claim asks for the deposit of that id.
    if (reply.status === 404 && !(await reply.text()).includes('No such endpoint')) continue;
    expect(reply.status, `${missing} ${path}`).toBe(405);
    // Its GET and DELETE only say that it takes POST. Those of agents are of the routes below an agent.
    if (/^(?:\/api\/v1)?\/a2a(?:\/\*)?$/.test(path)) methods.clear();
    const allowed = reply.headers.get('allow')?.split(', ') ?? [];
    expect(allowed, path).toEqual(expect.arrayContaining([...methods]));
    expect(allowed, path).not.toContain(missing);
    checked++;
  }
  expect(checked).toBeGreaterThan(30);
});

test('the words of a 405 say what the path takes', async () => {
  const reply = await ask('GET', '/api/v1/chat/completions?x=1');
  expect(await reply.json()).toEqual({
    error: {
      message: '/api/v1/chat/completions does not take GET. It takes POST',
      type: 'method_not_allowed',
      code: 405,
      param: null,
    },
  });
});

test.each([
  [
    '/register',
    /^OAuth clients do not register at this address\. .* Otherwise give the client an API key, as the header "Authorization: Bearer <key>"$/,
  ],
  ['/api/v1/v1/completions', /It is at \/api\/v1\/completions: check the base URL/],
  ['/chat/completions', /It is at \/api\/v1\/chat\/completions: check the base URL of the client\. See \/docs$/],
  ['/api/chat/completions', /It is at \/api\/v1\/chat\/completions: check the base URL/],
  ['/api/v1/v1/messages', /It is at \/api\/v1\/messages: check the base URL/],
  ['/api/v1/modles', /^No such endpoint: POST \/api\/v1\/modles\. See \/docs$/],
])('the words of a 404 say what to do, for what clients ask by themselves: POST %s', async (path, words) => {
  const reply = await ask('POST', path);
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({
    error: { type: 'not_found', message: expect.stringMatching(words) as string },
  });
});

test.each([
  ['GET', '/api/v1/models/?type=chat', '/api/v1/models?type=chat'],
  ['GET', '/api/v1/models//', '/api/v1/models'],
  ['GET', '/api/v1/models/count/', '/api/v1/models/count'],
  ['GET', '/api/v1/models/test/model/', '/api/v1/models/test/model'],
  ['GET', '/v1/models/', '/v1/models'],
  ['GET', '/v1beta/models/', '/v1beta/models'],
  ['GET', '/v1/models/test/model/endpoints/', '/v1/models/test/model/endpoints'],
  ['GET', '/api/v1/keys/?limit=2', '/api/v1/keys?limit=2'],
  ['GET', '/api/v1/', '/api/v1'],
  ['POST', '/v1/chat/completions/', '/v1/chat/completions'],
  ['POST', '/v1/messages//', '/v1/messages'],
  ['POST', '/v1beta/models/test/model:generateContent/', '/v1beta/models/test/model:generateContent'],
  ['POST', '/v2/rerank/', '/v2/rerank'],
  ['POST', '/api/v1/rpc/', '/api/v1/rpc'],
  ['DELETE', '/api/v1/keys/', '/api/v1/keys'],
  ['POST', '/mcp/', '/mcp'],
  ['GET', '/mcp/acme/tools/', '/mcp/acme/tools'],
  ['POST', '/api/v1/mcp/acme/tools/', '/api/v1/mcp/acme/tools'],
  ['POST', '/a2a/acme/agent/', '/a2a/acme/agent'],
  ['GET', '/a2a/acme/agent/v1/card/', '/a2a/acme/agent/v1/card'],
])('%s %s of a protocol is answered like %s', async (method, path, bare) => {
  const headers = { 'x-request-id': 'one', accept: 'application/json, text/event-stream' };
  const [slashed, plain] = [await ask(method, path, headers), await ask(method, bare, headers)];
  expect([slashed.status, await slashed.text()]).toEqual([plain.status, await plain.text()]);
  expect(slashed.status).toBeLessThan(500);
  expect(slashed.redirected).toBe(false);
});

test.each([
  ['GET', '/dashboard/', '/dashboard'],
  ['GET', '/tools/acme/search/', '/tools/acme/search'],
  ['GET', '/providers/', '/providers'],
])('a slash at the end of a page: %s %s', async (method, path, bare) => {
  const reply = await ask(method, path);
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({
    error: {
      type: 'not_found',
      message: expect.stringMatching(`It is at ${bare}, without the slash at its end$`) as string,
    },
  });
});

test.each(['/models', '/models/', '/models//?type=chat', '//models/'])(
  'GET %s of a program, whose base URL lacks /api/v1, is told where the list is; a browser gets a page',
  async (path) => {
    const reply = await ask('GET', path);
    expect([reply.status, reply.headers.get('content-type')]).toEqual([404, 'application/json; charset=utf-8']);
    expect(await reply.json()).toMatchObject({
      error: {
        type: 'not_found',
        message: expect.stringMatching(/It is at \/api\/v1\/models: check the base URL of the client/) as string,
      },
    });
    const page = await ask('GET', path, { accept: 'text/html,*/*' });
    expect([page.status, page.headers.get('content-type')]).toEqual([
      path === '/models' ? 200 : 404,
      'text/html; charset=utf-8',
    ]);
  },
);

test('what is wrong below /v1 is told with addresses below /v1', async () => {
  const reply = await ask('PUT', '/v1/chat/completions');
  expect(await reply.json()).toMatchObject({
    error: { message: '/v1/chat/completions does not take PUT. It takes POST', code: 'method_not_allowed' },
  });
  expect(await (await ask('POST', '/v1/modles')).json()).toMatchObject({
    error: { message: 'No such endpoint: POST /v1/modles. See /docs' },
  });
});

test.each([
  ['GET', '/api/v1/image/generate', 405, 'method_not_allowed'],
  ['PUT', '/api/v1/image/edit/quote', 405, 'method_not_allowed'],
  ['POST', '/api/v1/image/nowhere', 404, 'not_found'],
  ['DELETE', '/api/v1/video/queue', 405, 'method_not_allowed'],
  ['GET', '/api/v1/video/retrieve/', 405, 'method_not_allowed'],
  ['GET', '/api/v1/video/video_abc', 404, 'not_found'],
])('below /image and /video the code is a word here too: %s %s', async (method, path, status, code) => {
  const reply = await ask(method, path);
  expect(reply.status).toBe(status);
  expect(reply.headers.get('content-type')).toContain('application/json');
  expect(await reply.json()).toMatchObject({ error: { code, type: code, message: expect.any(String) as string } });
});

test.each(['/a2a', '/api/v1/a2a'])('OPTIONS %s tells what other methods get', async (path) => {
  const reply = await ask('OPTIONS', path);
  expect([reply.status, reply.headers.get('allow')]).toEqual([204, 'POST']);
  for (const method of ['GET', 'HEAD', 'DELETE', 'PUT']) {
    const { status, headers } = await ask(method, path);
    expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST']);
  }
});

test('HEAD /sse is GET without a body', async () => {
  const [get, head] = [await ask('GET', '/sse'), await ask('HEAD', '/sse')];
  expect([head.status, head.headers.get('content-type')]).toEqual([404, get.headers.get('content-type')]);
  expect(await head.text()).toBe('');
});

test('OPTIONS tells what a path takes, and where there is no path it is 404', async () => {
  const reply = await ask('OPTIONS', '/api/v1/keys');
  expect([reply.status, reply.headers.get('allow')]).toEqual([204, 'GET, HEAD, POST']);
  expect((await ask('OPTIONS', '/nowhere')).status).toBe(404);
});

test.each([
  // Their neighbours with an id take more.
  ['/api/v1/videos/models', 'GET, HEAD'],
  ['/api/v1/responses/input_tokens', 'POST'],
  // The wildcard of agents also has the routes of HTTP+JSON.
  ['/a2a/', 'POST'],
  ['/a2a/some-agent', 'POST'],
  ['/api/v1/a2a/some-agent', 'POST'],
])('OPTIONS %s lists what is done at this path alone', async (path, allow) => {
  const reply = await ask('OPTIONS', path);
  expect([reply.status, reply.headers.get('allow')]).toEqual([204, allow]);
});
