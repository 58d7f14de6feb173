import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { GatewayError } from '#errors';
import { toHttpError, type Dialect, withoutEndSlashes } from './error-table.ts';

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
  accepting.get(server)?.get(withoutEndSlashes(url.split('?', 1)[0]!));

/**
 * Whether a request with an Upgrade header asks for a WebSocket at a path that takes them. All other upgrade requests
 * are answered as normal requests, as HTTP allows.
 */
export const asksForUpgrade = (server: Server, request: IncomingMessage): boolean =>
  request.headers.upgrade?.toLowerCase() === 'websocket' && acceptOf(server, request) !== undefined;

/**
 * Whether a request is a whole WebSocket handshake. One that gets to a route is at a path that takes none. If a proxy
 * dropped `Connection`, the route itself may say so.
 */
export const isHandshake = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['sec-websocket-key'] !== undefined &&
  headers.connection?.toLowerCase().includes('upgrade') === true;

/**
 * Answers a handshake with an error in the usual format, and closes its socket. Fastify cannot answer it, because it is
 * no longer an HTTP exchange. `error`: a text for 426, after which clients that can do without a WebSocket do so.
 */
export function refuseUpgrade(
  socket: Socket,
  error: GatewayError | string,
  requestId: string,
  dialect: Dialect = 'own',
): void {
  if (typeof error === 'string')
    refuseWith(socket, { status: UPGRADE_REQUIRED, headers: {}, body: upgradeError(error) }, requestId);
  else refuseWith(socket, toHttpError(error, dialect), requestId);
}

/** The body of an answer with 426. */
export const upgradeError = (message: string) => ({
  error: { message, type: 'invalid_request', code: UPGRADE_REQUIRED, param: null },
});

export const UPGRADE_REQUIRED = 426;

function refuseWith(
  socket: Socket,
  { status, headers, body }: Pick<ReturnType<typeof toHttpError>, 'status' | 'headers'> & { readonly body: unknown },
  requestId: string,
): void {
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
