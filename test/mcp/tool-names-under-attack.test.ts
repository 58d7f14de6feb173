import { once } from 'node:events';
import { createServer, request as openRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { escrowOf } from '#billing';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { toolBlock } from './conformance/tool-block.ts';

// Attacks on access by tool: names that the gateway and a lenient server read differently. The servers take each name
// for one of their tools, whatever its case, its form in Unicode, and the blanks and the path around it.

const TOOLS = ['read', 'delete', 'l\u00f6schen', 'a/b'];
const lenient = (name: string) =>
  name
    .normalize('NFKC')
    .replaceAll(/[\p{C}\s_-]/gu, '')
    .toLowerCase()
    .split('/')
    .at(-1)!;

let listed: Server;
let unlisted: Server;
/** What the servers did, oldest first. */
const deeds: string[] = [];
let spine: Spine;

async function startServer(lists: boolean): Promise<Server> {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(text || '{}') as {
        id: number;
        method: string;
        params: { name: string };
      };
      const json = (body: object) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
      if (method === 'tools/call') {
        deeds.push(lenient(params.name));
        return json({ result: { content: [{ type: 'text', text: 'done' }] } });
      }
      if (method === 'tools/list' && lists)
        return json({ result: { tools: TOOLS.map((name) => ({ name, inputSchema: { type: 'object' } })) } });
      return json({ error: { code: -32601, message: 'Method not found' } });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;

beforeAll(async () => {
  [listed, unlisted] = await Promise.all([startServer(true), startServer(false)]);
  spine = await startSpine({
    toml: UNHURRIED + toolBlock('acme/files', urlOf(listed)) + toolBlock('acme/silent', urlOf(unlisted)),
  });
  await vi.waitFor(async () => expect(await namesAt(spine.key, '/mcp')).toContain('acme_files__read'), 60_000);
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});
afterAll(async () => {
  await spine.stop();
  for (const server of [listed, unlisted]) {
    server.closeAllConnections();
    server.close();
  }
});

/** Sent as it is written: clients of HTTP take the dots out of a path. */
async function send(
  key: string,
  path: string,
  body: object,
): Promise<{ readonly status: number; readonly text: string }> {
  const sending = openRequest(spine.origin, {
    path,
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
  });
  sending.end(JSON.stringify(body));
  const [response] = (await once(sending, 'response')) as [AsyncIterable<Buffer> & { readonly statusCode: number }];
  let text = '';
  for await (const chunk of response) text += chunk.toString();
  return { status: response.statusCode, text };
}
const rpc = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
const call = (key: string, path: string, name: string) => send(key, path, rpc('tools/call', { name, arguments: {} }));
async function namesAt(key: string, path: string): Promise<readonly string[]> {
  const { text } = await send(key, path, rpc('tools/list'));
  return (JSON.parse(text) as { result: { tools: { name: string }[] } }).result.tools.map(({ name }) => name);
}

let tenants = 0;
const limited = (...allowedServices: string[]) =>
  spine.tenant(`named-${(tenants += 1)}`, '1', { allowedServices: [...allowedServices] });

/** Names that a lenient server takes for `delete`. */
const NAMES = [
  'DELETE',
  'Delete',
  'delete ',
  ' delete',
  'delete\t',
  'delete\u0000',
  'delete\u200b',
  '\ufeffdelete',
  '\uff44\uff45\uff4c\uff45\uff54\uff45',
  'dele\u00adte',
  '../files/delete',
  './delete',
  'read/../delete',
  'read/delete',
  'x\\..\\delete',
  '/delete',
  'delete/',
  'de_lete',
];

describe.each(['acme/files', 'acme/silent'])('%s', (service) => {
  test.each([
    ['without the tool', [`${service}/*`, `-${service}/delete`]],
    ['without what begins so', [service, `-${service}/del*`]],
    ['with one other tool', [`${service}/read`]],
    ['with all that begins with a path', [`${service}/read*`, `-${service}/delete`, `-${service}/read/*`]],
  ])('a key %s does not reach it by another spelling', async (_what, patterns) => {
    const { key, account } = await limited(...patterns);
    const before = await spine.app.ledger.balance(escrowOf(account));
    deeds.length = 0;
    for (const name of ['delete', ...NAMES]) {
      const { text } = await call(key, `/mcp/${service}`, name);
      expect([name, deeds, text.includes('"error"') || text.includes('isError')]).toEqual([name, [], true]);
    }
    // The door of all tools, of agents and of models.
    for (const name of NAMES.map((one) => `acme_${service.slice(5)}__${one}`)) await call(key, '/mcp', name);
    for (const name of NAMES) {
      const words = [{ role: 'user', content: '{}' }];
      await send(key, '/api/v1/chat/completions', { model: `mcp/${service}/${name}`, max_tokens: 10, messages: words });
      const message = { kind: 'message', role: 'user', messageId: `m-${name}`, parts: [{ kind: 'data', data: {} }] };
      await send(key, `/a2a/mcp/${service}/${encodeURIComponent(name)}`, rpc('message/send', { message }));
    }
    expect(deeds.filter((deed) => deed === 'delete')).toEqual([]);
    expect(await spine.app.ledger.balance(escrowOf(account))).toEqual(before);
  });
});

test('a key for one server does not get to another by a path', async () => {
  const { key } = await limited('acme/files/read', 'acme/files/..');
  deeds.length = 0;
  for (const path of [
    '/mcp/acme/files/../silent',
    '/mcp/acme/files/%2e%2e/silent',
    '/mcp/acme/files%2f..%2fsilent',
    '/mcp/acme/files/..%2fsilent',
    '//mcp/acme/silent',
    '/mcp//acme/silent',
    '/mcp/acme/files/..;/silent',
    '/mcp/acme/files\\..\\silent',
    '/mcp/ACME/silent',
  ]) {
    const { status, text } = await call(key, path, 'read');
    expect([path, status >= 400 || text.includes('"error"'), deeds]).toEqual([path, true, []]);
  }
  // It is not the server that refuses.
  expect((await call(key, '/mcp/acme/files', 'read')).text).toContain('done');
  expect(deeds).toEqual(['read']);
});

test('a name with a slash of its own is what a pattern says', async () => {
  const { key } = await limited('acme/files/a/*');
  deeds.length = 0;
  expect((await call(key, '/mcp/acme/files', 'a/b')).text).toContain('done');
  expect((await call(key, '/mcp/acme/files', 'read')).text).toContain('may not use');
  expect(deeds).toEqual(['b']);
});

test('a minus takes a name away in each case and form of Unicode', async () => {
  const { key } = await limited('acme/files/*', '-acme/files/DELETE', '-Acme/Files/Lo\u0308sch*');
  expect(await namesAt(key, '/mcp/acme/files')).toEqual(['read', 'a/b']);
});

test('a tool that its server does not list is called by a key that names it, and by one that may all', async () => {
  for (const patterns of [['acme/files/hidden', '-acme/files/read'], ['acme/files'], ['acme/files/*'], ['acme/*']]) {
    const { key } = await limited(...patterns);
    expect([patterns, (await call(key, '/mcp/acme/files', 'hidden')).text]).toEqual([
      patterns,
      expect.stringContaining('done'),
    ]);
  }
});
