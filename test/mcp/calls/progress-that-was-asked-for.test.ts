import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, type Spine } from '../../support/spine.ts';
import { callTool, toolToml } from './modern-post.ts';

// Some servers write progress with a token that they made up, and some clients end their session at one that they do
// not know. So a client gets progress for its own token alone, whichever revisions it and the server speak.

interface Asked {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly _meta?: { readonly progressToken?: unknown } };
}

async function startServer(era: 'modern' | 'legacy'): Promise<Server> {
  const server = createServer((request, response) => {
    void readText(request).then((body) => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const { id, method, params } = JSON.parse(body) as Asked;
      const json = (message: object) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }));
      const cached = era === 'modern' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
      if (id === undefined) return response.writeHead(202).end();
      if (method === 'tools/list')
        return json({ result: { ...cached, tools: [{ name: 'go', inputSchema: { type: 'object' } }] } });
      if (method === 'server/discover' && era === 'modern')
        return json({ result: { ...cached, supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } });
      if (method === 'initialize' && era === 'legacy')
        return json({
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 's', version: '1' },
          },
        });
      if (method !== 'tools/call') return json({ error: { code: -32601, message: 'Method not found' } });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const event = (message: object) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
      const progress = (more: object) => event({ method: 'notifications/progress', params: { progress: 1, ...more } });
      progress({ progressToken: 'made up' });
      progress({});
      const token = params?._meta?.progressToken;
      if (token !== undefined) progress({ progressToken: token });
      event({ id, result: { ...cached, content: [] } });
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

let servers: readonly Server[];
let spine: Spine;
beforeAll(async () => {
  servers = [await startServer('modern'), await startServer('legacy')];
  const [modern, legacy] = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
  spine = await startSpine({
    toml: toolToml({ name: 'modern', url: modern! }) + toolToml({ name: 'legacy', url: legacy! }),
  });
});
afterAll(async () => {
  await spine.stop();
  for (const server of servers) server.close();
});

/** Calls the tool as a client of 2025-11-25, in a session. Resolves with the text of the answer. */
async function callInSession(service: string, meta: object): Promise<string> {
  const post = (message: object, headers: Record<string, string> = {}) =>
    fetch(`${spine.origin}/mcp/${service}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${spine.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
  const clientInfo = { name: 'c', version: '1' };
  const opened = await post({
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
  });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id')!, 'mcp-protocol-version': '2025-11-25' };
  await opened.text();
  await post({ method: 'notifications/initialized' }, session);
  const params = { name: 'go', arguments: {}, _meta: meta };
  return (await post({ id: 1, method: 'tools/call', params }, session)).text();
}

const tokensIn = (text: string): readonly unknown[] =>
  [...text.matchAll(/^data: (.*)$/gm)]
    .map(([, data]) => JSON.parse(data!) as { method?: string; params?: { progressToken?: unknown } })
    .flatMap(({ method, params }) => (method === 'notifications/progress' ? [params?.progressToken ?? null] : []));

const CALLS = {
  modern: async (service: string, meta: Record<string, unknown>) =>
    (await callTool(spine, service, 'go', {}, { meta })).text,
  legacy: callInSession,
};

test.each([
  ['modern', 'modern'],
  ['modern', 'legacy'],
  ['legacy', 'modern'],
  ['legacy', 'legacy'],
] as const)('a %s client in front of a %s server', async (client, service) => {
  const call = CALLS[client];
  for (const token of [41, 'mine']) expect(tokensIn(await call(service, { progressToken: token }))).toEqual([token]);
  expect(tokensIn(await call(service, {}))).toEqual([]);
  expect(await spine.faults()).toEqual([]);
});
