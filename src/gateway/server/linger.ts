import { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#wire';
import type { LimitsConfig } from '#config';
import { endsItsConnection } from './refuse-pipelines.ts';

type BodyLimits = Pick<LimitsConfig, 'bodyBytesMax' | 'chatBodyBytesMax' | 'mediaBodyBytesMax'>;

/** So much of a body is read after its request was answered, and for so long. */
const LINGER_BYTES = 32 * 1024 * 1024;
const LINGER_MS = 10_000;
/** Between two looks at how much has come. */
const WATCH_MS = 50;

/**
 * Has clients that are refused while they still send get their answer: a connection that is closed under them loses
 * it. The rest of the body is read and thrown away, within bounds; then the connection goes on, or ends. A body
 * whose length is said to be too large is refused before any of it is read: the function that is returned throws its
 * error.
 */
export function answerBeforeTheBody(server: FastifyInstance, limits: BodyLimits): (request: FastifyRequest) => void {
  server.addHook('onSend', (request, reply, payload, done) => {
    // Fastify ends the connection of what it cannot read. It is ended below, when its client has had time to read.
    if (!request.raw.complete && !endsItsConnection(request.raw)) reply.removeHeader('connection');
    done(null, payload);
  });
  server.addHook('onResponse', (request, _reply, done) => {
    const { raw } = request;
    if (!raw.complete && raw.socket instanceof Socket && !endsItsConnection(raw)) readOn(raw, raw.socket);
    done();
  });
  return (request) => {
    const { bodyLimit } = request.routeOptions;
    if (Number(request.headers['content-length']) > bodyLimit) throw tooLarge(bodyLimit, limits);
  };
}

function readOn(body: NodeJS.ReadableStream, socket: Socket): void {
  const end = () => socket.destroy();
  const timer = setTimeout(end, LINGER_MS).unref();
  // Node itself throws away a body that is not read. Those bytes are no data of the request, but the connection
  // counts them.
  const most = socket.bytesRead + LINGER_BYTES;
  const watch = setInterval(() => {
    if (socket.bytesRead > most) end();
  }, WATCH_MS).unref();
  const over = () => {
    clearTimeout(timer);
    clearInterval(watch);
    socket.removeListener('close', over);
  };
  body.once('end', over);
  socket.once('close', over);
  body.resume();
}

/** The error of a body over a limit of an endpoint, with the option that sets it. */
export function tooLarge(
  bytes: number,
  { bodyBytesMax, chatBodyBytesMax, mediaBodyBytesMax }: BodyLimits,
): GatewayError {
  const option =
    bytes === chatBodyBytesMax
      ? 'limits.chat_body_bytes_max'
      : bytes === bodyBytesMax
        ? 'limits.body_bytes_max'
        : bytes === mediaBodyBytesMax
          ? 'limits.media_body_bytes_max'
          : null;
  const set = option === null ? '' : `; the operator sets it with ${option}`;
  return new GatewayError(
    'payload_too_large',
    `The request body is too large: this endpoint takes at most ${bytes} bytes${set}`,
  );
}
