import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#wire';

/**
 * Requests of one connection of HTTP/1.1 that wait for their answers at once. Clients send one, and a few send some
 * ahead.
 */
const AHEAD_MAX = 32;

/** On the socket itself: a WeakMap costs each collection of the young heap a look at all its entries. */
const WAITING = Symbol('requests that wait');

type Waiting = Socket & { [WAITING]?: number };

const refused = new WeakSet<IncomingMessage>();

/**
 * Whether a request was refused because of those before it, and ends its connection: later requests on it are not
 * read.
 */
export const endsItsConnection = (request: IncomingMessage): boolean => refused.has(request);

/**
 * Refuses requests that are sent ahead of the answers to many others, and closes their connection. All requests of
 * one packet begin in one turn of the event loop, 250 of them in 64 KiB. HTTP/1.1 lets a server close a connection
 * at any time; requests that were not answered can be sent again.
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
