import { randomUUID } from 'node:crypto';
import {
  isInitializeRequest,
  WebStandardStreamableHTTPServerTransport,
  type EventStore,
  type JSONRPCMessage,
  type McpServer,
} from '@modelcontextprotocol/server';
import type { Announcer } from './working-tools.ts';

export interface LegacySessions {
  readonly count: number;
  handle(request: Request): Promise<Response>;
  /** Sends announcements to all sessions, but resource updates only to sessions that subscribed. */
  readonly announce: Announcer;
  close(): Promise<void>;
}

interface Session {
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly subscribed: Set<string>;
}

/**
 * Streamable HTTP of 2025-11-25 and before: one server per session, a GET stream, DELETE, and stored events for clients
 * that reconnect.
 */
export function createLegacySessions(createServer: () => McpServer): LegacySessions {
  const sessions = new Map<string, Session>();

  const open = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
    const server = createServer();
    const subscribed = new Set<string>();
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
      subscribed.add(params.uri);
      return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      subscribed.delete(params.uri);
      return {};
    });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, { server, transport, subscribed }),
      onsessionclosed: (id) => void sessions.delete(id),
      eventStore: createEventStore(),
      retryInterval: 50,
    });
    await server.connect(transport);
    return transport;
  };

  const each = (run: (session: Session) => void | Promise<void>) => {
    // A session whose client has left can't be notified.
    for (const session of sessions.values()) void Promise.resolve(run(session)).catch(() => {});
  };

  return {
    get count() {
      return sessions.size;
    },
    async handle(request) {
      const id = request.headers.get('mcp-session-id');
      const known = id === null ? undefined : sessions.get(id);
      if (known) return known.transport.handleRequest(request);
      if (id !== null) return refusal(404, -32_001, 'Session not found');
      if (request.method !== 'POST') return refusal(400, -32_000, 'No session');
      const body: unknown = await request
        .clone()
        .json()
        .catch(() => undefined);
      if (!isInitializeRequest(body)) return refusal(400, -32_000, 'No session');
      return (await open()).handleRequest(request, { parsedBody: body });
    },
    announce: {
      toolsChanged: () => each(({ server }) => server.sendToolListChanged()),
      promptsChanged: () => each(({ server }) => server.sendPromptListChanged()),
      resourcesChanged: () => each(({ server }) => server.sendResourceListChanged()),
      resourceUpdated: (uri) =>
        each(({ server, subscribed }) =>
          subscribed.has(uri) ? server.server.sendResourceUpdated({ uri }) : undefined,
        ),
    },
    async close() {
      await Promise.all([...sessions.values()].map(({ server }) => server.close()));
      sessions.clear();
    },
  };
}

function refusal(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status });
}

/** The events of one session, in order. Their ids contain the stream and the position. */
function createEventStore(): EventStore {
  const events: { readonly streamId: string; readonly message: JSONRPCMessage }[] = [];
  return {
    storeEvent: (streamId, message) => Promise.resolve(`${streamId}/${events.push({ streamId, message }) - 1}`),
    getStreamIdForEventId: (id) => Promise.resolve(events[placeOf(id)]?.streamId),
    async replayEventsAfter(id, { send }) {
      const streamId = events[placeOf(id)]?.streamId ?? '';
      for (const [place, event] of events.entries())
        if (place > placeOf(id) && event.streamId === streamId && 'jsonrpc' in event.message)
          await send(`${streamId}/${place}`, event.message);
      return streamId;
    },
  };
}

function placeOf(eventId: string): number {
  return Number(eventId.slice(eventId.lastIndexOf('/') + 1));
}
