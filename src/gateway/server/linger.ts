import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#wire';
import type { LimitsConfig } from '#config';
import { endsItsConnection } from './refuse-pipelines.ts';

type BodyLimits = Pick<LimitsConfig, 'bodyBytesMax' | 'chatBodyBytesMax' | 'mediaBodyBytesMax'>;

/** The maximum number of bytes of a body that is read after its request was answered, and the longest time for it. */
const LINGER_BYTES = 32 * 1024 * 1024;
const LINGER_MS = 10_000;
/** How often the number of bytes is checked, in milliseconds. */
const WATCH_MS = 50;

/**
 * Lets a client that is refused while it still sends its body read the answer: closing the connection at once would
 * lose it. The rest of the body is read and dropped, within limits. Then the connection is used again or closed. A body
 * with a content-length above the limit is refused before it is read: the returned function throws that error.
 */
export function answerBeforeTheBody(server: FastifyInstance, limits: BodyLimits): (request: FastifyRequest) => void {
  server.addHook('onSend', (request, reply, payload, done) => {
    // Fastify closes the connection of a request that it cannot read, and Node that of a client that asks for the close
    // (`http.request` without kept connections, node-fetch). Here it is closed later, when the client has had time to
    // read the answer. The same holds for the header that a gateway sets before it stops.
    const { raw } = request;
    if (!raw.complete && !endsItsConnection(raw)) {
      reply.removeHeader('connection');
      if (!reply.raw.headersSent) {
        reply.raw.removeHeader('connection');
        if (!reply.raw.shouldKeepAlive && raw.socket instanceof Socket) {
          reply.raw.shouldKeepAlive = true;
          closesLater.add(raw);
        }
      }
    }
    done(null, payload);
  });
  server.addHook('onResponse', (request, _reply, done) => {
    const { raw } = request;
    if (raw.socket instanceof Socket && !endsItsConnection(raw)) {
      if (!raw.complete) readOn(raw, raw.socket, closesLater.has(raw));
      else if (closesLater.has(raw)) raw.socket.destroySoon();
    }
    done();
  });
  return (request) => {
    const { bodyLimit } = request.routeOptions;
    if (Number(request.headers['content-length']) > bodyLimit) throw tooLarge(bodyLimit, limits);
  };
}

/** Requests whose client asked for the close of its connection, which waits for the end of the body. */
const closesLater = new WeakSet<IncomingMessage>();

function readOn(body: IncomingMessage, socket: Socket, closes: boolean): void {
  const end = () => socket.destroy();
  const timer = setTimeout(end, LINGER_MS).unref();
  // Node itself drops a body that is not read. It gives no data events for these bytes, but the socket counts them.
  const most = socket.bytesRead + LINGER_BYTES;
  const watch = setInterval(() => {
    if (socket.bytesRead > most) end();
  }, WATCH_MS).unref();
  const over = () => {
    clearTimeout(timer);
    clearInterval(watch);
    socket.removeListener('close', over);
    if (closes) socket.destroySoon();
  };
  body.once('end', over);
  socket.once('close', over);
  body.resume();
}

/** The error for a body above the limit of an endpoint. It names every option that has this value. */
export function tooLarge(
  bytes: number,
  { bodyBytesMax, chatBodyBytesMax, mediaBodyBytesMax }: BodyLimits,
): GatewayError {
  const options = [
    ...(bytes === chatBodyBytesMax ? ['limits.chat_body_bytes_max'] : []),
    ...(bytes === bodyBytesMax ? ['limits.body_bytes_max'] : []),
    ...(bytes === mediaBodyBytesMax ? ['limits.media_body_bytes_max'] : []),
  ];
  const set = options.length === 0 ? '' : `; the operator sets it with ${options.join(' or ')}`;
  return new GatewayError(
    'payload_too_large',
    `The request body is too large: this endpoint takes at most ${bytes} bytes${set}`,
  );
}
