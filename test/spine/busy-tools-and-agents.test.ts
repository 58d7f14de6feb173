import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callMessage, openSession, send } from '../mcp/faults/clients.ts';
import { callTool, toolToml } from '../mcp/calls/modern-post.ts';
import { agentBlock, startCardedAgent, type RawAgent } from '../support/a2a-agent/index.ts';
import { startRawMcp, type RawMcp } from '../support/raw-mcp.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A tool or an agent that has too many requests says when to come back, and its client reads it, as of a model.

/** How the next call is answered. */
let next: (response: ServerResponse) => void = () => {};
const refuse =
  (status: number, headers: Readonly<Record<string, string>>, body = '<html>slow down</html>') =>
  (response: ServerResponse) =>
    void response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body);

/** A server with sessions. */
async function startLegacy(): Promise<{ readonly url: string; close(): void }> {
  const server: Server = createServer((request, response) => {
    let text = '';
    request.on('data', (part: Buffer) => (text += part.toString()));
    request.on('end', () => {
      const { id, method } = JSON.parse(text || '{}') as { id?: unknown; method?: string };
      const result = (value: object) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: value }));
      if (method === 'initialize')
        return result({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'old', version: '1' },
        });
      if (method === 'tools/list') return result({ tools: [{ name: 't', inputSchema: { type: 'object' } }] });
      if (method === 'tools/call') return next(response);
      return response.writeHead(method === 'server/discover' ? 400 : 202).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

let modern: RawMcp;
let legacy: Awaited<ReturnType<typeof startLegacy>>;
let agent: RawAgent;
let rest: RawAgent;
let spine: Spine;
beforeAll(async () => {
  modern = await startRawMcp(() => (response) => next(response), ['{"name":"t","inputSchema":{"type":"object"}}']);
  legacy = await startLegacy();
  const start = (binding: 'JSONRPC' | 'HTTP+JSON') => startCardedAgent(({ response }) => next(response), { binding });
  [agent, rest] = [await start('JSONRPC'), await start('HTTP+JSON')];
  spine = await startSpine({
    toml: `${UNHURRIED}[upstream]\ncooldown_ms = 1\n${toolToml({ name: 'new', url: modern.url })}${toolToml({ name: 'old', url: legacy.url })}${agentBlock({ name: 'far/rpc', provider: 'Agent', endpoint: agent.url })}${agentBlock({ name: 'far/rest', provider: 'Agent', endpoint: rest.url })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  await modern.close();
  legacy.close();
  await agent.close();
  await rest.close();
});

interface Heard {
  readonly status: number;
  readonly code: number | undefined;
  readonly after: string | null;
}
const door = () => ({ origin: spine.origin, key: spine.key });
const heard = async (response: Response): Promise<Heard> => {
  const { error } = (await response.json()) as { error?: { code: number } };
  return { status: response.status, code: error?.code, after: response.headers.get('retry-after') };
};
const tool = async (service: string): Promise<Heard> => {
  const { status, message, headers } = await callTool(door(), service, 't');
  return { status, code: message.error?.code, after: headers.get('retry-after') };
};
const send1 = (service: string) =>
  spine
    .post('/chat/completions', { model: `a2a/${service}`, messages: [{ role: 'user', content: 'hello' }] })
    .then(heard);

const WAYS: readonly (readonly [string, () => Promise<Heard>, of: 'rpc' | 'http'])[] = [
  ['a tool of a server without sessions', () => tool('new'), 'rpc'],
  ['a tool of a server with sessions', () => tool('old'), 'rpc'],
  [
    'the same, called in a session',
    async () => heard(await send(await openSession(door(), 'old'), callMessage('t', {}, 7))),
    'rpc',
  ],
  ['an agent over JSON-RPC', () => send1('far/rpc'), 'http'],
  ['an agent over HTTP and JSON', () => send1('far/rest'), 'http'],
];

test.each(WAYS)('%s', async (what, call, of) => {
  const before = await spine.balance();
  next = refuse(429, { 'retry-after': '7' });
  // In a session the status says that the message was taken.
  const status = what.includes('session') && what.includes('same') ? 200 : 429;
  expect(await call()).toEqual({ status, code: of === 'rpc' ? -32_016 : 429, after: '7' });
  next = refuse(503, { 'retry-after': '11' });
  expect(await call()).toMatchObject({ code: of === 'rpc' ? -32_017 : 500, after: '11' });
  next = refuse(529, {});
  expect(await call()).toMatchObject({ code: of === 'rpc' ? -32_017 : 529, after: null });
  expect(await spine.balance()).toEqual(before);
  expect(await spine.faults()).toEqual([]);
});
