import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type GatewayError, toHttpError } from '#wire';

/**
 * Answers an upgrade request with an error in the usual format, and closes its socket. Fastify cannot answer it,
 * because it is no longer an HTTP exchange.
 */
export function refuseUpgrade(socket: Socket, error: GatewayError, requestId: string): void {
  const { status, headers, body } = toHttpError(error);
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
