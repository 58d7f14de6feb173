import type { ServerResponse } from 'node:http';
import { startScripted, type Asked, type ScriptedServer } from '../sessions/scripted-server.ts';

const CAPABILITIES = JSON.stringify({
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
  serverInfo: { name: 'part', version: '1' },
});

export interface PartServer extends ScriptedServer {
  /** What was asked and told here, by method; `response` is what has none. */
  heard(method: string): readonly Asked[];
  /** The streams that are open for what belongs to no request. */
  readonly streams: Set<ServerResponse>;
  /** Names of what it lists. */
  readonly tools: string[];
  readonly resources: string[];
  /** Milliseconds that it takes to open a stream. */
  streamDelayMs: number;
}

/** A legacy server with one tool, whose stream stays open; everything else is the test's. */
export async function startPartServer(
  answer: (asked: Asked, response: ServerResponse) => unknown = () => undefined,
): Promise<PartServer> {
  const streams = new Set<ServerResponse>();
  const tools = ['ask'];
  const resources = ['a'];
  const scripted = await startScripted({
    initializeResult: CAPABILITIES,
    async answer(asked, response) {
      const { method, id } = asked.message;
      const result = (of: object) => {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result: of }));
      };
      if (asked.http === 'GET') {
        await new Promise((resolve) => setTimeout(resolve, server.streamDelayMs));
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        streams.add(response);
        response.on('close', () => streams.delete(response));
        return;
      }
      if (method === 'tools/list')
        return result({ tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) });
      if (method === 'resources/list')
        return result({ resources: resources.map((name) => ({ uri: `file:///${name}`, name })) });
      if (method === 'resources/templates/list') return result({ resourceTemplates: [] });
      if (method === 'logging/setLevel' || method === 'resources/subscribe' || method === 'resources/unsubscribe')
        return result({});
      return answer(asked, response);
    },
  });
  const server: PartServer = Object.assign(scripted, {
    streams,
    streamDelayMs: 0,
    tools,
    resources,
    heard: (method: string) =>
      scripted.asked.filter(({ http, message }) => http === 'POST' && (message.method ?? 'response') === method),
  });
  return server;
}
