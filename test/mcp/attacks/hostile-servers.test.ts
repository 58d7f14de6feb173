import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../../support/spine.ts';
import { toolToml } from '../calls/modern-post.ts';

/** A small generator of its own, so that a run can be had again. */
function createRandom(seed: number) {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return {
    below: (n: number) => Math.floor(next() * n),
    pick: <T>(of: readonly T[]): T => of[Math.floor(next() * of.length)]!,
  };
}

const VALUES = [
  'null',
  'true',
  '0',
  '-1',
  '1e999',
  '""',
  '"x"',
  '[]',
  '[null]',
  '{}',
  '{"a":1,"a":2}',
  '{"__proto__":{}}',
  '{"_meta":null}',
  '{"_meta":[]}',
  '{"content":null}',
  '{"content":[null,1,{"type":"resource_link","uri":5}],"_meta":{"x":1,"x":2}}',
  '{"isError":"yes","content":{}}',
  '{"resultType":"input_required"}',
  '{"resultType":"input_required","inputRequests":[]}',
  '{"resultType":"input_required","inputRequests":{"a":null},"requestState":5}',
  '{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}',
  '{"resultType":"input_required","requestState":"s"}',
  '{"resultType":"task","task":{"taskId":1}}',
  '{"task":{"taskId":"t"}}',
  '{"resultType":7}',
  '{"tools":null}',
  '{"tools":{}}',
  '{"tools":[null,1,{"name":5},{"name":"a","name":"b"},{"name":"t","_meta":7,"inputSchema":[]}],"nextCursor":5}',
  '{"tools":[{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":"A","type":"string"}}},"outputSchema":{"type":"array"}}]}',
  '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}}}',
  '{"supportedVersions":["2026-07-28"],"capabilities":null,"_meta":{"io.modelcontextprotocol/serverInfo":7}}',
  '{"supportedVersions":["2026-07-28"],"capabilities":[],"capabilities":{}}',
  '{"supportedVersions":[null]}',
  '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}',
  '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"capabilities":7}',
  '{"protocolVersion":"\\u00e9","capabilities":{}}',
  '{"protocolVersion":7}',
  '{"prompts":[{}],"resources":[{"uri":"x"}],"contents":[{"uri":7}],"messages":[7]}',
];
const ERRORS = [
  '{"code":-32601,"message":"no"}',
  '{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}',
  '{"code":-32042,"message":"u","data":{"elicitations":[{"mode":"url"}]}}',
  '{"code":-32042,"message":"u","data":{"elicitations":[1]}}',
  '{"code":1e999,"message":"x"}',
  '{"code":-32000,"message":"session"}',
  '{"code":-32000,"message":7}',
  '{}',
  'null',
  '{"code":-32021,"code":-1,"message":"m"}',
  '{"code":-32602,"message":"m","data":{"uri":"x"}}',
];
const NOTES = [
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"x"}}',
  '{"jsonrpc":"2.0","method":"notifications/message"}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
  '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{}}}',
  '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}',
  '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url"}}',
  '{"jsonrpc":"2.0","id":1,"method":"roots/list"}',
  '{"jsonrpc":"2.0","id":1,"method":"ping"}',
  '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
  '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":null}}',
  '{"jsonrpc":"2.0","method":"notifications/resources/updated"}',
  '',
  '[]',
  '7',
];
const STATUSES = [
  200, 200, 200, 200, 200, 200, 202, 204, 302, 400, 400, 401, 404, 405, 406, 409, 410, 429, 500, 503, 599,
];
const TYPES = [
  'application/json',
  'application/json',
  'application/json',
  'text/event-stream',
  'text/event-stream',
  'text/event-stream;x',
  'TEXT/EVENT-STREAM',
  'text/html',
  '',
];

async function startHostile(seed: number): Promise<string> {
  const { below, pick } = createRandom(seed);
  const answer = (id: string) => {
    const own = below(6) === 0 ? pick(['null', '7', '"x"', '{}', '1e400']) : id;
    return below(4) === 0
      ? `{"jsonrpc":"2.0","id":${own},"error":${pick(ERRORS)}}`
      : `{"jsonrpc":"2.0","id":${own},"result":${pick(VALUES)}}`;
  };
  const reply = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { id, method } = (text === '' ? {} : JSON.parse(text)) as { readonly id?: unknown; readonly method?: string };
    const idText = id === undefined ? 'null' : JSON.stringify(id);
    // Often enough it is what it says it is, so that the rest is reached.
    const honest = below(3) > 0;
    const session = below(2) === 0 ? { 'mcp-session-id': pick(['s', 'é', 'a b', 'x'.repeat(2_000)]) } : {};
    if (honest && method === 'server/discover') {
      const result = seed % 2 === 0 ? `"result":${VALUES[29]!}` : `"error":${ERRORS[0]!}`;
      return response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(`{"jsonrpc":"2.0","id":${idText},${result}}`);
    }
    if (honest && method === 'initialize')
      return response
        .writeHead(200, { 'content-type': 'application/json', ...session })
        .end(`{"jsonrpc":"2.0","id":${idText},"result":${VALUES[33]!}}`);
    if (honest && id === undefined && request.method === 'POST') return response.writeHead(202).end();
    if (below(12) === 0) return request.socket.destroy();
    response.writeHead(honest ? 200 : pick(STATUSES), { 'content-type': pick(TYPES), ...session });
    if (below(3) === 0)
      return response.end(
        pick([answer(idText), answer(idText), '', 'no json', '\ufeff{}', '[[[[', '{"jsonrpc":"2.0"}']),
      );
    const events = Array.from(
      { length: below(4) },
      () =>
        `${pick(['', 'id: 1\n', 'id: é\n', 'retry: 0\n', ': x\n', '\ufeff', 'event: odd\n'])}data: ${pick(NOTES)}${pick(['\n\n', '\r\r', '\r\n\r\n'])}`,
    );
    for (const event of events) response.write(event);
    if (below(8) === 0) return request.socket.destroy();
    return response.end(below(4) === 0 ? '' : `data: ${answer(idText)}\n\n`);
  };
  const server = createServer((request, response) => void reply(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
  progressToken: 1,
};
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const SEEDS = DEEP ? [2, 3, 4, 5, 6, 7, 8, 9] : [2, 3];
const ROUNDS = DEEP ? 40 : 20;
const REQUESTS: readonly (readonly [string, object])[] = [
  ['tools/call', { name: 't', arguments: {} }],
  ['tools/call', { name: 't', arguments: {} }],
  ['tools/list', {}],
  ['resources/read', { uri: 'x' }],
  ['prompts/get', { name: 'p' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' } }],
];

test.each(SEEDS)('whatever a server answers (%s), nothing breaks, and the books are right', async (seed) => {
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown) => void rejections.push(reason);
  process.on('unhandledRejection', onRejection);
  onTestFinished(() => void process.off('unhandledRejection', onRejection));
  const url = await startHostile(seed);
  const toml = `${toolToml({ name: 'acme', url })}${UNHURRIED}[upstream]\ncooldown_ms = 0\nhead_timeout_ms = 500\nidle_timeout_ms = 500\ncall_timeout_ms = 1500\n[billing]\ndrain_ms = 50\n`;
  const spine = await startSpine({ toml });
  const { below, pick } = createRandom(seed * 7);
  let sessions: string[] = [];
  let served = 0;

  const send = async (body: object, headers: Record<string, string>, method = 'POST') => {
    try {
      const response = await fetch(`${spine.origin}/mcp/acme`, {
        method,
        headers: {
          authorization: `Bearer ${spine.key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        },
        signal: AbortSignal.timeout(pick([30, 3_000, 3_000, 3_000])),
        ...(method === 'POST' ? { body: JSON.stringify(body) } : {}),
      });
      const text = await response.text();
      served++;
      expect(text).not.toContain('Internal error');
      return response;
    } catch (error) {
      if (!(error instanceof DOMException)) throw error;
      return null;
    }
  };

  const one = async (id: number) => {
    const [method, params] = pick(REQUESTS);
    const kind = below(4);
    if (kind === 0) return send({ jsonrpc: '2.0', id, method, params }, {});
    if (kind === 1) {
      const name = (params as { name?: string; uri?: string }).name ?? (params as { uri?: string }).uri;
      const head = {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(name === undefined ? {} : { 'mcp-name': name }),
      };
      return send({ jsonrpc: '2.0', id, method, params: { ...params, _meta: ENVELOPE } }, head);
    }
    const session = sessions.length > 0 && below(4) > 0 ? pick(sessions) : null;
    if (session === null) {
      const opened = await send(
        {
          jsonrpc: '2.0',
          id,
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: { sampling: {} },
            clientInfo: { name: 'c', version: '1' },
          },
        },
        {},
      );
      const given = opened?.headers.get('mcp-session-id');
      if (given) sessions = [...sessions, given].slice(-4);
      return opened;
    }
    const head = { 'mcp-session-id': session };
    if (below(8) === 0) return send({}, { ...head, ...(below(2) === 0 ? { 'last-event-id': '1' } : {}) }, 'GET');
    if (below(8) === 0)
      return send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id - 1 } }, head);
    return send({ jsonrpc: '2.0', id, method, params: { ...params, _meta: { progressToken: 1 } } }, head);
  };
  for (let round = 0; round < ROUNDS; round++)
    await Promise.all(Array.from({ length: 8 }, (_, i) => one(round * 8 + i + 1)));

  expect(served).toBeGreaterThan(ROUNDS * 2);
  expect(rejections).toEqual([]);
  expect(spine.logs.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  expect((await spine.app.audit()).checks.filter((check) => !check.ok)).toEqual([]);
  await spine.stop();
});
