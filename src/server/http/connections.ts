import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import type { LimitsConfig } from '#config';
import type { NetworkBudgets } from '#wire/budgets';
import { beginChunks, type BodyChunks, CHUNK_WEIGHT, CHUNKS_FREE, chunksOf } from './body-chunks.ts';
import { clientNetworkOf } from './request-context.ts';

type BodyLimits = Pick<LimitsConfig, 'bodyBytesMax' | 'chatBodyBytesMax' | 'mediaBodyBytesMax'>;

/** The maximum number of bytes of a body that is read after its request was answered, and the longest time for it. */
const DRAIN_BYTES = 32 * 1024 * 1024;
const DRAIN_MS = 10_000;
/** Bytes that are read in each turn, what a read counts at least, and the milliseconds between turns. */
const TURN_BYTES = 1024 * 1024;
const READ_WEIGHT = 4096;
const TURN_MS = 20;

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
      // Otherwise Node would drop the rest of the body itself, and nobody would see its chunks.
      raw.read(0);
      reply.removeHeader('connection');
      if (!reply.raw.headersSent) {
        reply.raw.removeHeader('connection');
        // Node has this member for its own use. With it the answer says nothing of the connection, which is true: it
        // stays open, but not for another request. test/server/http/http-private-parts.test.ts has the versions with
        // which this was checked.
        if (!reply.raw.shouldKeepAlive && raw.socket instanceof Socket) {
          reply.raw.shouldKeepAlive = true;
          closesLater.add(raw);
        }
      }
    }
    done(null, payload);
  });
  const rests = new Rests();
  server.addHook('onResponse', (request, _reply, done) => {
    const { raw } = request;
    if (raw.socket instanceof Socket && !endsItsConnection(raw)) {
      if (!raw.complete) rests.read(raw, raw.socket, closesLater.has(raw));
      else if (closesLater.has(raw)) raw.socket.destroySoon();
    }
    done();
  });
  return (request) => {
    const { bodyLimit } = request.routeOptions;
    if (Number(request.headers['content-length']) > bodyLimit) throw tooLarge(bodyLimit, limits);
  };
}

/** Counts the chunks of a body from the first one on. Call it for each request, before anything is awaited. */
export function countChunks(request: FastifyRequest, networks: NetworkBudgets): void {
  const { raw } = request;
  if (raw.headers['transfer-encoding'] === undefined) return;
  const chunks = beginChunks(raw, () => networks.budgetOf(clientNetworkOf(request)));
  const push = raw.push.bind(raw);
  const counted = (chunk: Uint8Array | null, encoding?: BufferEncoding) => {
    if (chunk === null) return push(null);
    chunks.add(chunk.byteLength);
    return (chunks.isDropped || push(chunk, encoding)) && !chunks.areTooSmall;
  };
  // The server gives each chunk to `push`, and reads no more of the connection if it returns false.
  raw.push = counted;
}

/** Requests whose client asked for the close of its connection, which waits for the end of the body. */
const closesLater = new WeakSet<IncomingMessage>();

const ignoreRead = () => {};

/** A connection on which the rest of a refused body comes. */
interface Rest {
  readonly socket: Socket;
  /** Its `bytesRead` at which it is closed. */
  readonly most: number;
  /** null: its length is known. */
  readonly chunks: BodyChunks | null;
  /** The number of chunks after which it is closed, if they are too small. */
  readonly chunksMost: number;
}

/**
 * The rests of refused bodies. Their connections take turns: one is read at a time, and the others wait in the buffers
 * of the system. So a flood of refused bodies takes little of the event loop. One read (64 KiB at most) is all that a
 * connection gets before all others: a client with a short rest doesn't wait long behind many with long ones.
 */
class Rests {
  readonly #all = new Set<Rest>();
  #timer: NodeJS.Timeout | null = null;

  read(body: IncomingMessage, socket: Socket, closes: boolean): void {
    const chunks = chunksOf(body);
    const chunksMost = (chunks?.count ?? 0) + CHUNKS_FREE;
    const rest: Rest = { socket, most: socket.bytesRead + DRAIN_BYTES, chunks, chunksMost };
    if (chunks !== null) chunks.isDropped = true;
    const timer = setTimeout(() => socket.destroy(), DRAIN_MS).unref();
    const over = () => {
      clearTimeout(timer);
      this.#all.delete(rest);
      socket.removeListener('close', over);
      if (closes) socket.destroySoon();
      else socket.resume();
    };
    body.once('end', over);
    socket.once('close', over);
    // libuv reads up to 32 times in a row unless the first read stops it. The body's own _read would start it again.
    body._read = ignoreRead;
    body.on('data', () => {
      if (this.#all.has(rest)) socket.pause();
    });
    this.#all.add(rest);
    this.#pauseAfterThis(rest);
    if (this.#timer === null) this.#wait();
  }

  #wait(): void {
    this.#timer = setTimeout(() => this.#readNext(0, TURN_BYTES), TURN_MS).unref();
  }

  /** Reads one connection in each turn of the event loop, until these bytes have come or none has more. */
  #readNext(withoutData: number, bytes: number): void {
    const [rest] = this.#all;
    if (rest === undefined) this.#timer = null;
    else if (withoutData >= this.#all.size || bytes <= 0) this.#wait();
    else {
      // It goes to the end.
      this.#all.delete(rest);
      this.#all.add(rest);
      const { socket, most, chunks, chunksMost } = rest;
      const before = weightOf(rest);
      const isFlood = chunks !== null && chunks.areTooSmall && chunks.count > chunksMost;
      if (isFlood || socket.bytesRead > most) socket.destroy();
      else socket.resume();
      this.#pauseAfterThis(rest, () => {
        const read = weightOf(rest) - before;
        this.#readNext(read > 0 ? 0 : withoutData + 1, bytes - Math.max(read, READ_WEIGHT));
      });
    }
  }

  /** After what runs now: the event loop reads a connection that is resumed now before it is paused. */
  #pauseAfterThis(rest: Rest, then = () => {}): void {
    setImmediate(() => {
      if (this.#all.has(rest)) rest.socket.pause();
      then();
    });
  }
}

/** The bytes of a rest until now, with the weight of its chunks. */
const weightOf = ({ socket, chunks }: Rest): number => socket.bytesRead + (chunks?.count ?? 0) * CHUNK_WEIGHT;

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

/**
 * Maximum number of requests that may wait for answers on one HTTP/1.1 connection. Most clients send one at a time, and
 * a few send some ahead.
 */
const AHEAD_MAX = 32;

/** Stored on the socket itself, because with a WeakMap each collection of the young heap checks all its entries. */
const WAITING = Symbol('requests that wait');

type WaitingSocket = Socket & { [WAITING]?: number };

const refused = new WeakSet<IncomingMessage>();

/** The answer to this request ends its connection. */
export function endConnectionOf(request: IncomingMessage): void {
  refused.add(request);
}

/**
 * Whether a request was refused because too many others wait on its connection, because its body is too slow, or
 * because nobody knows where its body ends. The connection then ends, and later requests on it are not read.
 */
const endsItsConnection = (request: IncomingMessage): boolean => refused.has(request);

/** Whether a body has an end: Node reads none of another coding, and drops the connection. */
const hasEnd = ({ headers }: IncomingMessage): boolean =>
  /(?:^|[, \t])chunked$/i.test(headers['transfer-encoding'] ?? 'chunked');

/**
 * Refuses requests that are sent while too many others wait for answers, and closes their connection. All requests of
 * one packet begin in one turn of the event loop: up to 250 in 64 KiB. HTTP/1.1 lets a server close a connection at any
 * time. The client can send unanswered requests again. A request whose body has no end is refused likewise.
 */
export function refusePipelines(server: FastifyInstance): void {
  server.addHook('onRequest', (request, reply, done) => {
    const socket: WaitingSocket = request.raw.socket;
    const ahead = (socket[WAITING] ?? 0) + 1;
    socket[WAITING] = ahead;
    const isAhead = ahead > AHEAD_MAX;
    if (!isAhead && hasEnd(request.raw)) return done();
    refused.add(request.raw);
    void reply.header('connection', 'close');
    done(
      isAhead
        ? new GatewayError(
            'rate_limit_exceeded',
            `More than ${AHEAD_MAX} requests wait for answers on this connection: open another one`,
            { retryAfterS: 1 },
          )
        : new GatewayError('invalid_request', 'The request is not valid HTTP: its transfer-encoding is unknown'),
    );
  });
  server.addHook('onResponse', (request, _reply, done) => {
    const socket: WaitingSocket = request.raw.socket;
    socket[WAITING] = (socket[WAITING] ?? 1) - 1;
    done();
  });
}
