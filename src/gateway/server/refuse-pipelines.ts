import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#wire';

/**
 * Maximum number of requests that may wait for answers on one HTTP/1.1 connection. Most clients send one at a time, and
 * a few send some ahead.
 */
const AHEAD_MAX = 32;

/** Stored on the socket itself, because with a WeakMap each collection of the young heap checks all its entries. */
const WAITING = Symbol('requests that wait');

type Waiting = Socket & { [WAITING]?: number };

const refused = new WeakSet<IncomingMessage>();

/** The answer to this request ends its connection. */
export function endConnectionOf(request: IncomingMessage): void {
  refused.add(request);
}

/**
 * Whether a request was refused because too many others wait on its connection, or because its body is too slow. The
 * connection then ends, and later requests on it are not read.
 */
export const endsItsConnection = (request: IncomingMessage): boolean => refused.has(request);

/**
 * Refuses requests that are sent while too many others wait for answers, and closes their connection. All requests of
 * one packet begin in one turn of the event loop: up to 250 in 64 KiB. HTTP/1.1 lets a server close a connection at any
 * time. The client can send unanswered requests again.
 */
export function refusePipelines(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, done) => {
    const socket: Waiting = request.raw.socket;
    const ahead = (socket[WAITING] ?? 0) + 1;
    socket[WAITING] = ahead;
    if (ahead <= AHEAD_MAX) return done();
    refused.add(request.raw);
    void reply.header('connection', 'close');
    done(
      new GatewayError(
        'rate_limit_exceeded',
        `More than ${AHEAD_MAX} requests wait for answers on this connection: open another one`,
        { retryAfterS: 1 },
      ),
    );
  });
  server.addHook('onResponse', (request, _reply, done) => {
    const socket: Waiting = request.raw.socket;
    socket[WAITING] = (socket[WAITING] ?? 1) - 1;
    done();
  });
}
