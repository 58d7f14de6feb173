import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface RawRequest {
  readonly http: string;
  readonly text: string;
  readonly message: {
    readonly id?: number | string;
    readonly method?: string;
    readonly params?: Record<string, unknown>;
    readonly result?: unknown;
    readonly error?: unknown;
  };
  readonly headers: IncomingMessage['headers'];
}

export interface RawServer {
  readonly url: string;
  readonly seen: readonly RawRequest[];
  /** `seen` with a RawRequest. */
  readonly events: EventEmitter;
}

/**
 * Answers a request that is no handshake; what it returns is the JSON body, and null means that it has answered by
 * itself.
 */
export type RawAnswer = (request: RawRequest, response: ServerResponse) => string | null;

export interface RawOptions {
  /** The result of `initialize`, as JSON text. */
  readonly initialized?: string;
  /** null keeps no sessions. */
  readonly session?: string | null;
  /** Answers GET; 405 without. */
  readonly get?: (request: RawRequest, response: ServerResponse) => void;
}

export const INITIALIZED =
  '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}';
export const EVENTS = { 'content-type': 'text/event-stream' } as const;

/** A legacy server that says what a test wants, to the letter, until that test is over. */
export async function startRawServer(answer: RawAnswer, options: RawOptions = {}): Promise<RawServer> {
  const server = await openRawServer(answer, options);
  onTestFinished(server.close);
  return server;
}

/** The same for more than one test. */
export async function openRawServer(
  answer: RawAnswer,
  { initialized = INITIALIZED, session = 's1', get }: RawOptions = {},
): Promise<RawServer & { close(): Promise<void> }> {
  const seen: RawRequest[] = [];
  const events = new EventEmitter();
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const one: RawRequest = {
      http: request.method ?? '',
      text,
      message: text === '' ? {} : (JSON.parse(text) as RawRequest['message']),
      headers: request.headers,
    };
    seen.push(one);
    events.emit('seen', one);
    const { message } = one;
    const json = (body: string, headers: Record<string, string> = {}, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
    if (one.http === 'GET' && get) return get(one, response);
    if (one.http !== 'POST') return void response.writeHead(one.http === 'DELETE' ? 200 : 405).end();
    if (message.method === 'initialize')
      return void json(
        `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${initialized}}`,
        session === null ? {} : { 'mcp-session-id': session },
      );
    if (message.method === 'server/discover')
      return void json(
        `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"error":{"code":-32601,"message":"Method not found"}}`,
      );
    if (message.id === undefined) return void response.writeHead(202).end();
    const body = answer(one, response);
    if (body !== null) json(body);
  }
  const http = createServer((request, response) => void take(request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const close = async () => {
    http.close();
    http.closeAllConnections();
    await once(http, 'close');
  };
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, seen, events, close };
}
