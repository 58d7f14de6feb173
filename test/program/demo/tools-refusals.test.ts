import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runDemoProvider, type DemoProvider } from '../../../src/program/demo/provider.ts';

let demo: DemoProvider;
beforeAll(async () => {
  demo = await runDemoProvider();
});
afterAll(() => demo.close());

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const HEADERS = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
const asked = (method: unknown, params: object = {}, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
const modern = (method: string, meta: object = {}) => asked(method, { _meta: { ...ENVELOPE, ...meta } });

it.each([
  ['no JSON', '{', {}, 400, -32700, null],
  ['no message', [], {}, 400, -32600, null],
  ['an id that is none', asked('ping', {}, {}), {}, 400, -32600, null],
  ['params that are none', { ...asked('ping'), params: 1 }, {}, 400, -32600, 1],
  ['a method that it has not', asked('prompts/list'), {}, 200, -32601, 1],
  [
    'a method that it has not, of the newest revision',
    modern('ping'),
    { ...HEADERS, 'mcp-method': 'ping' },
    404,
    -32601,
    1,
  ],
  ['arguments that are none', asked('tools/call', { name: 'roll_dice', arguments: [] }), {}, 200, -32602, 1],
  [
    'a revision that there is not',
    modern('tools/list', { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }),
    { ...HEADERS, 'mcp-protocol-version': '2099-01-01' },
    400,
    -32022,
    1,
  ],
  ['a revision of the header alone', asked('tools/list'), { 'mcp-protocol-version': '2024-01-01' }, 400, -32000, null],
  ['headers of the newest revision without its envelope', asked('tools/list'), HEADERS, 400, -32602, 1],
  ['headers that say something else', modern('tools/list'), { ...HEADERS, 'mcp-method': 'tools/call' }, 400, -32020, 1],
  ['headers that lack', modern('tools/list'), {}, 400, -32020, 1],
] as const)('refuses %s', async (_what, body, headers, status, code, id) => {
  const response = await fetch(demo.toolsUrl, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  expect([response.status, await response.json()]).toMatchObject([status, { jsonrpc: '2.0', id, error: { code } }]);
});

it.each(['{"jsonrpc":"2.0","method":"notifications/initialized"}', '{"jsonrpc":"2.0","id":1,"result":{}}'])(
  'takes %s in silence',
  async (body) => {
    const response = await fetch(demo.toolsUrl, { method: 'POST', body });
    expect([response.status, await response.text()]).toEqual([202, '']);
  },
);

it('has neither a stream nor sessions', async () => {
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(demo.toolsUrl, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  }
});

it.each([
  [{ origin: 'https://evil.example' }, 403],
  [{ host: 'evil.example' }, 403],
  [{ origin: 'http://localhost:3000' }, 200],
])('%j is answered with %i', async (headers, status) => {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  request(demo.toolsUrl, { method: 'POST', headers }, (response) => {
    response.resume();
    resolve(response.statusCode);
  }).end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  expect(await promise).toBe(status);
});
