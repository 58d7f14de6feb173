import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  UrlElicitationRequiredError,
  type ServerNotification,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { onTestFinished } from 'vitest';
import { z } from 'zod';

/** A server of the first SDK, which speaks no revision but legacy ones, with sessions. */
export interface LegacyServer {
  readonly url: string;
  /** Sessions that are open, by id. */
  readonly sessions: ReadonlyMap<string, Session>;
  /** Every message that came, with the session and method it came by. */
  readonly seen: readonly Seen[];
  /**
   * `opened`, `deleted`, `hanging` and `cancelled` with the session's id, `cancelled-message` with the request's,
   * `seen` with a Seen.
   */
  readonly events: EventEmitter;
  /** Forgets all sessions, as a server does that starts anew. */
  forget(): void;
  /** Cuts every connection. */
  cut(): void;
}

export interface Session {
  readonly server: McpServer;
  readonly transport: StreamableHTTPServerTransport;
  readonly subscribed: Set<string>;
}

export interface Seen {
  readonly session: string | undefined;
  readonly http: string;
  /** As it came. */
  readonly text: string;
  readonly message: {
    readonly id?: unknown;
    readonly method?: string;
    readonly params?: Record<string, unknown>;
    readonly result?: unknown;
    readonly error?: unknown;
  };
  readonly headers: IncomingMessage['headers'];
}

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

const FORM = (field: string) => ({
  type: 'object' as const,
  properties: { [field]: { type: 'string' as const } },
  required: [field],
});
const says = (text: string) => ({ content: [{ type: 'text' as const, text }] });

const askFor = (extra: Extra, field: string) =>
  extra.sendRequest(
    { method: 'elicitation/create', params: { message: `Your ${field}?`, requestedSchema: FORM(field) } },
    ElicitResultSchema,
    {
      timeout: 60_000,
    },
  );
const askModel = (extra: Extra) =>
  extra.sendRequest(
    {
      method: 'sampling/createMessage',
      params: { messages: [{ role: 'user', content: { type: 'text', text: 'Say hello' } }], maxTokens: 9 },
    },
    CreateMessageResultSchema,
  );
const askRoots = (extra: Extra) => extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema);

function createFixture(events: EventEmitter, transport: StreamableHTTPServerTransport): McpServer {
  const server = new McpServer(
    { name: 'legacy', version: '1.0' },
    { capabilities: { logging: {}, resources: { subscribe: true, listChanged: true } }, instructions: 'Be kind' },
  );
  const tool = (name: string, run: (extra: Extra) => Promise<ReturnType<typeof says>>) =>
    server.registerTool(name, { description: name }, (extra) => run(extra));

  server.registerTool('echo', { description: 'Says what it is given', inputSchema: { text: z.string() } }, ({ text }) =>
    says(text),
  );
  tool('fail', async () => ({ ...says('it failed'), isError: true }));
  tool('ask', async (extra) => {
    const { action, content } = await askFor(extra, 'name');
    return says(`${action} ${String(content?.['name'])}`);
  });
  tool('interview', async (extra) => {
    const first = await askFor(extra, 'name');
    const second = await askFor(extra, 'color');
    return says(`${String(first.content?.['name'])} likes ${String(second.content?.['color'])}`);
  });
  tool('everything', async (extra) => {
    const [form, reply, { roots }] = await Promise.all([askFor(extra, 'name'), askModel(extra), askRoots(extra)]);
    return says(JSON.stringify([form.content, reply.content, roots]));
  });
  tool('sample', async (extra) => says(JSON.stringify((await askModel(extra)).content)));
  tool('roots', async (extra) => says(JSON.stringify((await askRoots(extra)).roots)));
  // As many servers do: not as a part of the request that runs.
  tool('ask-beside', async () => {
    const { action, content } = await server.server.elicitInput({
      message: 'Your name?',
      requestedSchema: FORM('name'),
    });
    return says(`${action} ${String(content?.['name'])}`);
  });
  tool('progress', async ({ _meta: meta, sendNotification }) => {
    const { progressToken } = meta ?? {};
    if (progressToken !== undefined)
      for (const progress of [1, 2])
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
    return says('done');
  });
  tool('progress-and-ask', async (extra) => {
    const { progressToken } = extra._meta ?? {};
    const report = async (progress: number) =>
      progressToken === undefined ||
      extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress } });
    await report(1);
    await askFor(extra, 'name');
    await report(2);
    return says('done');
  });
  tool('log', async ({ sendNotification }) => {
    for (const level of ['debug', 'warning', 'error'] as const)
      await sendNotification({ method: 'notifications/message', params: { level, data: level } });
    return says('logged');
  });
  tool('hang', ({ signal }) => {
    events.emit('hanging', transport.sessionId);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        events.emit('cancelled', transport.sessionId);
        reject(new Error('cancelled'));
      });
    });
  });
  tool('open-page', async () => {
    throw new UrlElicitationRequiredError([
      { mode: 'url', message: 'Sign in', elicitationId: 'e1', url: 'https://example.com/sign-in' },
    ]);
  });
  tool('touch', async () => {
    await server.server.sendResourceUpdated({ uri: 'test://watched' });
    server.sendResourceListChanged();
    return says('touched');
  });
  server.registerResource('watched', 'test://watched', {}, () => ({
    contents: [{ uri: 'test://watched', text: 'here' }],
  }));
  server.registerResource('any', new ResourceTemplate('test://any/{id}', { list: undefined }), {}, ({ href }) => ({
    contents: [{ uri: href, text: 'any' }],
  }));
  server.registerPrompt('greet', { description: 'Greets' }, async () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }],
  }));
  return server;
}

interface LegacyServerOptions {
  readonly stateless?: boolean;
  /** How long a session's own stream takes to open. */
  readonly streamMs?: number;
}

export async function startLegacyServer(options: LegacyServerOptions = {}): Promise<LegacyServer> {
  const events = new EventEmitter();
  const sessions = new Map<string, Session>();
  const seen: Seen[] = [];

  async function open(): Promise<StreamableHTTPServerTransport> {
    const subscribed = new Set<string>();
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: options.stateless ? undefined : randomUUID,
      onsessioninitialized(id) {
        sessions.set(id, { server, transport, subscribed });
        events.emit('opened', id);
      },
      onsessionclosed(id) {
        sessions.delete(id);
        events.emit('deleted', id);
      },
    } as ConstructorParameters<typeof StreamableHTTPServerTransport>[0]);
    const server = createFixture(events, transport);
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      subscribed.add(params.uri);
      return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      subscribed.delete(params.uri);
      events.emit('unsubscribed', params.uri);
      return {};
    });
    await server.connect(transport);
    return transport;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const id = request.headers['mcp-session-id'] as string | undefined;
    const message = (text === '' ? {} : JSON.parse(text)) as Seen['message'];
    const one: Seen = { session: id, http: request.method ?? '', text, message, headers: request.headers };
    seen.push(one);
    events.emit('seen', one);
    if (message.method === 'notifications/cancelled') events.emit('cancelled-message', message.params?.['requestId']);
    const known = id === undefined ? undefined : sessions.get(id);
    const refuse = (status: number, why: string) =>
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: why } }));
    if (request.method === 'GET') await pause(options.streamMs ?? 0);
    if (known) await known.transport.handleRequest(request, response, text === '' ? undefined : message);
    else if (id !== undefined) refuse(404, 'Session not found');
    else if (message.method === 'initialize' || options.stateless)
      await (await open()).handleRequest(request, response, message);
    else refuse(400, 'No session');
  }

  const http = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(async () => {
    http.close();
    http.closeAllConnections();
    await once(http, 'close');
  });
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    sessions,
    seen,
    events,
    forget: () => sessions.clear(),
    cut: () => http.closeAllConnections(),
  };
}

/** What a tool says in its result. */
export const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]!.text;
