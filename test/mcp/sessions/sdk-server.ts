import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport, type EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { onTestFinished } from 'vitest';
import { z } from 'zod';

export interface SdkServerOptions {
  /** Events have ids and can be asked for again. */
  readonly resumable?: boolean;
  /** Answers with JSON where it can. */
  readonly json?: boolean;
  /** Milliseconds that clients are told to wait before they come back; default 10. */
  readonly retryMs?: number;
}

interface Session {
  readonly server: McpServer;
  readonly transport: StreamableHTTPServerTransport;
}

export interface SdkServer {
  readonly url: string;
  /** Ids of the sessions that are open. */
  sessions(): string[];
  /** Sessions that were ended by DELETE. */
  readonly deleted: readonly string[];
  /** Requests that came: `METHOD session message-method`. */
  readonly requests: readonly string[];
  /** Forgets a session without a word, as a restart does. */
  lose(id: string): void;
  session(id: string): Session;
  /** Lets the tool `wait` answer. */
  finish(): void;
  /** Resolves when the tool `wait` has begun this many times. */
  waiting(times: number): Promise<void>;
}

/** A stateful server of the v1 SDK, one McpServer per session, as its own examples build it. */
export async function startSdkServer({
  resumable = false,
  json = false,
  retryMs = 10,
}: SdkServerOptions = {}): Promise<SdkServer> {
  const open = new Map<string, Session>();
  const deleted: string[] = [];
  const requests: string[] = [];
  const gate = Promise.withResolvers<void>();
  const waits: (() => void)[] = [];
  let waiting = 0;

  const makeServer = () => {
    const server = new McpServer(
      { name: 'sdk', version: '1' },
      { capabilities: { logging: {}, tools: { listChanged: true } } },
    );
    server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({
      content: [{ type: 'text', text }],
    }));
    server.registerTool('fails', {}, () => ({ isError: true, content: [{ type: 'text', text: 'no' }] }));
    server.registerTool('wait', {}, async ({ signal }) => {
      waiting++;
      for (const told of waits.splice(0)) told();
      await Promise.race([gate.promise, once(signal, 'abort')]);
      return { content: [{ type: 'text', text: 'waited' }] };
    });
    server.registerTool('progress', {}, async ({ _meta, sendNotification }) => {
      for (const progress of [1, 2, 3])
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken: _meta!.progressToken!, progress, total: 3 },
        });
      return { content: [{ type: 'text', text: 'done' }] };
    });
    server.registerTool('sample', {}, async () => {
      const said = await server.server.createMessage({
        messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }],
        maxTokens: 5,
      });
      return { content: [{ type: 'text', text: JSON.stringify(said.content) }] };
    });
    server.registerTool('elicit', {}, async () => {
      const said = await server.server.elicitInput({
        message: 'who?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
      });
      return { content: [{ type: 'text', text: JSON.stringify(said) }] };
    });
    server.registerTool('roots', {}, async () => ({
      content: [{ type: 'text', text: JSON.stringify(await server.server.listRoots()) }],
    }));
    server.registerTool('breaks-off', {}, async ({ closeSSEStream }) => {
      closeSSEStream?.();
      waiting++;
      for (const told of waits.splice(0)) told();
      await gate.promise;
      return { content: [{ type: 'text', text: 'in one piece' }] };
    });
    return server;
  };

  const server = createServer((request, response) => {
    void (async () => {
      const body = request.method === 'POST' ? await readBody(request) : undefined;
      const id = request.headers['mcp-session-id'];
      requests.push(`${request.method} ${String(id)} ${(body as { method?: string } | undefined)?.method ?? ''}`);
      const known = typeof id === 'string' ? open.get(id) : undefined;
      if (known) return known.transport.handleRequest(request, response, body);
      if (id !== undefined) {
        response.writeHead(404, { 'content-type': 'application/json' });
        return response.end(
          JSON.stringify({ jsonrpc: '2.0', error: { code: -32_001, message: 'Session not found' }, id: null }),
        );
      }
      const own = makeServer();
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => void open.set(made, { server: own, transport }),
        onsessionclosed(closed) {
          open.delete(closed);
          deleted.push(closed);
        },
        enableJsonResponse: json,
        ...(resumable ? { eventStore: createEventStore(), retryInterval: retryMs } : {}),
      });
      await own.connect(transport);
      return transport.handleRequest(request, response, body);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    gate.resolve();
    await Promise.all([...open.values()].map((session) => session.server.close()));
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    sessions: () => [...open.keys()],
    deleted,
    requests,
    lose: (id) => void open.delete(id),
    session: (id) => open.get(id)!,
    finish: () => gate.resolve(),
    async waiting(times) {
      while (waiting < times) await new Promise<void>((told) => waits.push(told));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
}

function createEventStore(): EventStore {
  const events: { readonly stream: string; readonly message: JSONRPCMessage }[] = [];
  const placeOf = (id: string) => Number(id.slice(id.lastIndexOf('/') + 1));
  return {
    storeEvent: (stream, message) => Promise.resolve(`${stream}/${events.push({ stream, message }) - 1}`),
    getStreamIdForEventId: (id) => Promise.resolve(events[placeOf(id)]?.stream),
    async replayEventsAfter(id, { send }) {
      const stream = events[placeOf(id)]?.stream ?? '';
      for (const [place, event] of events.entries())
        if (place > placeOf(id) && event.stream === stream && 'jsonrpc' in event.message)
          await send(`${stream}/${place}`, event.message);
      return stream;
    },
  };
}
