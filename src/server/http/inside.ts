import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { PAYMENT_HEADERS } from './body-sizes.ts';

interface InsideRequest {
  readonly body: Buffer;
  /** Beside those of the handshake, which has the credential, the names and the tags of the client. */
  readonly headers: OutgoingHttpHeaders;
  readonly signal: AbortSignal;
}

/**
 * Makes a POST to the address of a WebSocket's `handshake`, over a connection in memory. It is read, admitted, billed
 * and answered as one that came over the network, with backpressure, and its client has left when `signal` aborts.
 * Rejects if the connection ends without an answer.
 */
export async function requestInside(
  { server }: FastifyInstance,
  handshake: IncomingMessage,
  { body, headers, signal }: InsideRequest,
): Promise<IncomingMessage> {
  const [near, far] = duplexPair();
  server.emit('connection', far);
  // What listens to connections has run: this one takes no place of its network. It has no socket that could time out.
  Object.assign(far, { remoteAddress: handshake.socket.remoteAddress, setTimeout: () => far });
  const sent = request({
    createConnection: () => near,
    method: 'POST',
    path: handshake.url!.split('?', 1)[0]!,
    headers: {
      ...headersInside(handshake.headers),
      'content-type': 'application/json',
      'content-length': body.byteLength,
      ...headers,
    },
    signal,
  });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  // Its errors are those that reading it throws.
  sent.on('error', () => {});
  return answer;
}

/** Headers of a connection, of a handshake, or of one request and its body: those that a request inside has itself. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  'connection',
  'upgrade',
  'keep-alive',
  'te',
  'expect',
  'accept',
  'accept-encoding',
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'idempotency-key',
  ...PAYMENT_HEADERS,
]);

const headersInside = (headers: IncomingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => !NOT_PASSED.has(name) && !name.startsWith('sec-websocket-')),
  );
