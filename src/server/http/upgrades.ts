import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { GatewayError } from '#errors';
import { toHttpError, type Dialect } from './error-table.ts';

/* WebSockets: which addresses take them, and how a handshake is refused. */

/** Takes a handshake. The socket is its own from then on: nobody else answers, closes or listens for errors. */
type AcceptUpgrade = (request: IncomingMessage, wire: Socket, head: Buffer) => void;

const accepting = new WeakMap<object, Map<string, AcceptUpgrade>>();

/** Lets a path of the server take WebSockets. The server must not listen yet. */
export function addUpgrade({ server }: FastifyInstance, path: string, accept: AcceptUpgrade): void {
  let paths = accepting.get(server);
  if (paths === undefined) {
    accepting.set(server, (paths = new Map<string, AcceptUpgrade>()));
    server.on('upgrade', (request, wire, head) => {
      const take = acceptOf(server, request);
      if (take === undefined) wire.destroy();
      else take(request, wire as Socket, head);
    });
  }
  paths.set(path, accept);
}

const acceptOf = (server: object, { url = '' }: IncomingMessage): AcceptUpgrade | undefined =>
  accepting.get(server)?.get(url.split('?', 1)[0]!);

/**
 * Whether a request with an Upgrade header asks for a WebSocket at a path that takes them. All other upgrade requests
 * are answered as normal requests, as HTTP allows.
 */
export const asksForUpgrade = (server: Server, request: IncomingMessage): boolean =>
  request.headers.upgrade?.toLowerCase() === 'websocket' && acceptOf(server, request) !== undefined;

/**
 * Answers a handshake with an error in the usual format, and closes its socket. Fastify cannot answer it, because it is
 * no longer an HTTP exchange.
 */
export function refuseUpgrade(socket: Socket, error: GatewayError, requestId: string, dialect: Dialect = 'own'): void {
  const { status, headers, body } = toHttpError(error, dialect);
  const text = JSON.stringify(body);
  const lines = {
    date: new Date().toUTCString(),
    ...headers,
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${head.join('')}\r\n${text}`);
  // Otherwise a client that keeps its side open would keep the socket.
  socket.destroySoon();
}
