import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type GatewayError, toHttpError } from '#wire';

/**
 * Answers a request that is no HTTP exchange any more with an error, in the shape that every other error has, and
 * closes its socket.
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
  // A client that keeps its side open would keep the socket.
  socket.destroySoon();
}
