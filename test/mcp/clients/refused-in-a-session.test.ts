import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, test } from 'vitest';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { modernPost, toolToml } from '../calls/modern-post.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

/** The server lists members that only the gateway or its clients may set. */
const TOOL =
  '{"name":"echo","inputSchema":{"type":"object"},"_meta":{"own":1,"tollgate/max_cost":"0","tollgate/other":1,"x402/payment":{}}}';

const server = ofFile(
  () =>
    startRawMcp(
      ({ method }) =>
        method === 'tools/list'
          ? `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[${TOOL}]}`
          : '{"resultType":"complete","content":[{"type":"text","text":"done"}]}',
      [TOOL],
    ),
  (one) => one.close(),
);
const spine = spineOfFile(() => ({
  // It stands still: a rate gives nothing back while a slow machine asks.
  elapsed: () => 0,
  toml: `[limits]\nrequests_per_minute = 60\nburst = 20\n${toolToml({ name: 'acme/echo', url: server.url })}`,
}));

/** Each test has its own rate. */
const authorization = async (name: string) =>
  `Bearer ${(await spine.tenant(name.replaceAll(/[^a-z0-9]+/g, '-'), '1')).key}`;

const CLIENTS = {
  'v1, in a session': async (path: string, bearer: string) => {
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { authorization: bearer } };
    await client.connect(new StreamableHTTPClientTransport(new URL(spine.origin + path), { requestInit }));
    return client;
  },
  'v2, of 2026-07-28': async (path: string, bearer: string) => {
    const mode = { pin: '2026-07-28' } as const;
    const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const requestInit = { headers: { authorization: bearer } };
    await client.connect(new ModernTransport(new URL(spine.origin + path), { requestInit }));
    return client as unknown as Client;
  },
} as const;

describe.each(Object.entries(CLIENTS))('a client %s', (name, connect) => {
  test.each(['/mcp/acme/echo', '/mcp'])(
    'that sends the _meta of a listed tool and of a result with its calls to %s is served',
    async (path) => {
      const client = await connect(path, await authorization(`c${name}${path}`));
      const { tools } = await client.listTools();
      const tool = tools.find((one) => one.name.endsWith('echo'))!;
      // What a server lists under the gateway's names would be a cap that no client chose.
      expect(Object.keys(tool._meta!).toSorted()).toEqual(['own', 'tollgate/definition', 'tollgate/price']);
      const first = await client.callTool({ name: tool.name, arguments: {}, _meta: tool._meta });
      expect(first._meta).toMatchObject({ 'tollgate/generation': { cost: '0.001' } });
      const again = { ...tool._meta, ...first._meta, 'tollgate/finish': 'length', 'x402/payment-response': {} };
      const second = await client.callTool({ name: tool.name, arguments: {}, _meta: again });
      expect(second.content).toEqual([{ type: 'text', text: 'done' }]);
      expect(server.asked.at(-1)!.text).not.toMatch(/tollgate\/|x402\//);
      expect(server.asked.at(-1)!.text).toContain('"own":1');
      const misspelt = client.callTool({ name: tool.name, arguments: {}, _meta: { 'tollgate/max_costs': '1' } });
      await expect(misspelt).rejects.toThrow('tollgate/max_costs');
      await client.close();
    },
  );
});

const message = (id: number, params: object = {}, method = 'tools/call') => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { name: 'echo', arguments: {}, ...params },
});

async function open(path: string, bearer: string) {
  const headers = { authorization: bearer, accept: 'application/json, text/event-stream' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  const reply = await spine.post(path, { ...message(0, params), method: 'initialize' }, headers);
  const session = { ...headers, 'mcp-session-id': reply.headers.get('mcp-session-id')! };
  return async (body: unknown, more: Record<string, string> = {}) => {
    const answer = await spine.post(path, body, { ...session, ...more });
    const text = await answer.text();
    const data = text.split('\n').find((line) => line.startsWith('data: '));
    return { status: answer.status, headers: answer.headers, body: JSON.parse(data?.slice(6) ?? text) as unknown };
  };
}

test.each([
  ['/mcp/acme/echo', 'echo'],
  ['/mcp', 'acme_echo__echo'],
])('in a session at %s a refused request is a JSON-RPC error with status 200, with its id', async (path, name) => {
  const post = await open(path, await authorization(`refused ${path}`));
  const refused = async (body: unknown, more?: Record<string, string>) => {
    const { status, body: answered } = await post(body, more);
    return { status, ...(answered as object) };
  };
  for (const params of [
    { name, _meta: { 'tollgate/unknown': 1 } },
    { name, _meta: { 'tollgate/max_cost': 'much' } },
    { name, max_cost: 1 },
    { name, _meta: { 'tollgate/idempotency-key': '' } },
    { name, Arguments: {} },
  ])
    expect(await refused(message(7, params))).toMatchObject({ status: 200, id: 7, error: { code: -32_602 } });
  expect(await refused({ jsonrpc: '2.0', id: 8, method: 7 })).toMatchObject({ status: 200, id: 8, error: {} });
  // Not in a session: these have a status that says so.
  expect(await refused(message(9, { name }), { 'mcp-session-id': 'lost' })).toMatchObject({ status: 404 });
  expect(await refused(message(9, { name }), { authorization: 'Bearer wrong' })).toMatchObject({ status: 401, id: 9 });
  expect(await refused(message(9, { name }), { 'mcp-protocol-version': '1999-01-01' })).toMatchObject({ status: 400 });
  expect((await post('{"jsonrpc":')).status).toBe(400);
});

test('a request above the rate has status 200 in a session, and says when to come back', async () => {
  const bearer = await authorization('rate');
  const post = await open('/mcp/acme/echo', bearer);
  const replies = [];
  for (let id = 1; id < 100; id++) replies.push(await post(message(id, {}, 'tools/list')));
  const refused = replies.find(({ body }) => (body as { error?: unknown }).error !== undefined)!;
  expect(refused.status).toBe(200);
  const seconds = Number(refused.headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(0);
  expect(refused.body).toMatchObject({
    id: replies.indexOf(refused) + 1,
    error: { code: -32_016, data: { type: 'rate_limit_exceeded', retry_after: seconds, retry_after_s: seconds } },
  });
  // As 2026-07-28 says, and with the id too.
  const modern = await modernPost(spine, '/mcp/acme/echo', 'tools/list', {}, { headers: { authorization: bearer } });
  expect([modern.status, modern.message.id, modern.message.error?.code]).toEqual([429, 1, -32_016]);
});
