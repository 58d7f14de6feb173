import type { A2aHandler } from '../calls/modern-post.ts';

/** A JSON-RPC message as a client sees it. */
export interface Said {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** A stream of events that is read on as it comes. */
export interface Listening {
  readonly status: number;
  readonly text: () => string;
  /** Resolves once this text has come; rejects when the stream ends before. */
  has(text: string): Promise<void>;
  /** `whole` where the server ended it, `broken` where the connection broke, with what had come. */
  readonly over: Promise<{ readonly how: 'whole' | 'broken'; readonly text: string }>;
  leave(): void;
}

/** The session of a client of the revisions before 2026-07-28. */
export interface OldSession {
  readonly id: string;
  readonly door: A2aHandler;
  readonly service: string;
}

const BOTH = 'application/json, text/event-stream';

export const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'old', version: '1' },
  },
};

/** Opens a session, and says that it is initialized. */
export async function openSession(door: A2aHandler, service: string): Promise<OldSession> {
  const reply = await post(door, service, INITIALIZE);
  const text = await reply.text();
  const id = reply.headers.get('mcp-session-id');
  if (id === null) throw new Error(`no session: ${reply.status} ${text}`);
  const session = { id, door, service };
  await (await send(session, { jsonrpc: '2.0', method: 'notifications/initialized' })).text();
  return session;
}

/** Posts a message into a session. */
export const send = (session: OldSession, message: object, signal?: AbortSignal): Promise<Response> =>
  post(session.door, session.service, message, { 'mcp-session-id': session.id }, signal);

export function post(
  door: A2aHandler,
  service: string,
  message: object,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${door.origin}/mcp/${service}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json', accept: BOTH, ...headers },
    body: JSON.stringify(message),
    ...(signal ? { signal } : {}),
  });
}

export const callMessage = (tool: string, args: object = {}, id: string | number = 1, meta?: object) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: tool, arguments: args, ...(meta ? { _meta: meta } : {}) },
});

/** No request of a session has the id of another. */
let lastId = 100;

/** Calls a tool in a session; the response message and its HTTP status. */
export async function callIn(
  session: OldSession,
  tool: string,
  args: object = {},
  id: string | number = ++lastId,
  meta?: object,
) {
  const reply = await send(session, callMessage(tool, args, id, meta));
  return { status: reply.status, message: await lastOf(reply) };
}

/** The last message of a reply, JSON or events. */
export async function lastOf(reply: Response): Promise<Said> {
  const text = await reply.text();
  const events = [...text.matchAll(/^data: ?(\{.*)$/gm)].map(([, data]) => data!);
  const last = reply.headers.get('content-type')?.startsWith('text/event-stream') ? events.at(-1) : text;
  return JSON.parse(last === undefined || last === '' ? '{}' : last) as Said;
}

/** The stream of a session for what belongs to no request. */
export async function listenIn({ id, door, service }: OldSession): Promise<Listening> {
  const left = new AbortController();
  const headers = { authorization: `Bearer ${door.key}`, accept: 'text/event-stream', 'mcp-session-id': id };
  return follow(await fetch(`${door.origin}/mcp/${service}`, { headers, signal: left.signal }), left);
}

export async function endSession({ id, door, service }: OldSession): Promise<number> {
  const headers = { authorization: `Bearer ${door.key}`, 'mcp-session-id': id };
  return (await fetch(`${door.origin}/mcp/${service}`, { method: 'DELETE', headers })).status;
}

/** `subscriptions/listen` of a modern client. */
export async function listenModern(
  door: A2aHandler,
  service: string,
  notifications: object = { toolsListChanged: true },
): Promise<Listening> {
  const left = new AbortController();
  const method = 'subscriptions/listen';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const message = { jsonrpc: '2.0', id: 'listen', method, params: { notifications, _meta } };
  return follow(
    await post(door, service, message, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method }, left.signal),
    left,
  );
}

/** Reads a reply on as it comes. */
export function follow(reply: Response, left: AbortController): Listening {
  let text = '';
  let ended = false;
  let wake = Promise.withResolvers<void>();
  const rouse = () => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  const read = async (): Promise<'whole' | 'broken'> => {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of reply.body ?? []) {
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        rouse();
      }
      return 'whole';
    } catch {
      return 'broken';
    } finally {
      ended = true;
      rouse();
    }
  };
  return {
    status: reply.status,
    text: () => text,
    async has(wanted) {
      while (!text.includes(wanted)) {
        if (ended) throw new Error(`the stream ended without ${wanted}: ${text}`);
        await wake.promise;
      }
    },
    over: read().then((how) => ({ how, text })),
    leave: () => left.abort(),
  };
}
