import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError, type Placed, PlacedList } from '#wire';
import type { LimitsConfig } from '#config';
import type { MemoryHold } from '../held-memory.ts';
import { PAYMENT_HEADERS } from '../payments/payment-header.ts';
import { callerOf, clientNetworkOf } from './admission-of-request.ts';
import { type BodyMemory, type BodyRefusal, createBodyMemory } from './body-memory.ts';
import { tooLarge } from './linger.ts';
import { endConnectionOf } from './refuse-pipelines.ts';

/** Reads the bodies of requests into memory that is counted. One for each server. */
export interface RequestBodies {
  /** Bytes that are held now for bodies above 64 KiB, and for slow smaller ones. */
  heldBytes(): number;
  /** To be called before the body is read, for each request with a body. */
  expect(request: FastifyRequest, reply: FastifyReply): void;
  read(request: FastifyRequest, payload: Readable, weight: number, done: Done): void;
  /** Begins to count the files that the gateway fetches for a request. `network`: null if it is not known. */
  openFiles(account: string, network: string | null): FileMemory;
}

/** The memory of the files of one request. */
interface FileMemory {
  /** Counts more bytes. Throws GatewayError `rate_limit_exceeded`, `service_unavailable` without room. */
  grow(bytes: number): void;
  /** Gives all of it back. */
  release(): void;
}

type Done = (error: Error | null, body?: Buffer) => void;

declare module 'fastify' {
  interface FastifyInstance {
    requestBodies: RequestBodies;
  }
}

/** A body up to this size is not counted if it arrives quickly. */
const SMALL_BYTES = 64 * 1024;
/** The speed of a larger body is its average over this time. */
const WINDOW_MS = 10_000;
const TURN_MS = 500;

/* A chunked body: see gather. */
const PIECE_BYTES = 64 * 1024;
/** This many chunks may have any size. */
const CHUNKS_FREE = 4_096;
/** With more chunks, their average size must be at least this. */
const CHUNK_BYTES_MIN = 64;

const HELD = Symbol('memory of the body');
type Holding = FastifyRequest & { [HELD]?: HeldBody };

/** The memory of one body. It is given back when its last user has ended: the request, and calls that it began. */
export class HeldBody {
  hold: MemoryHold | null = null;
  #users = 1;

  /** Another user of the body. Call the returned function once, when that user has ended. */
  keep(): () => void {
    this.#users += 1;
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.leave();
    };
  }

  leave(): void {
    this.#users -= 1;
    if (this.#users === 0) this.hold?.release();
  }
}

/** The memory of a request's body; null for a small body, which is not counted. */
export const heldBodyOf = (request: FastifyRequest): HeldBody | null => (request as Holding)[HELD] ?? null;

/**
 * A parser of content that gives the bytes of a body. `weight`: the memory that the body takes while its request runs,
 * as a multiple of its bytes. The server must have request bodies, see addRequestBodies.
 */
export const readBytes =
  (weight: number) =>
  (request: FastifyRequest, payload: Readable, done: Done): void =>
    request.server.requestBodies.read(request, payload, weight, done);

type Limits = Pick<
  LimitsConfig,
  | 'anonymousBodyBytesMax'
  | 'bodiesBytesMax'
  | 'bodyBytesMax'
  | 'chatBodyBytesMax'
  | 'mediaBodyBytesMax'
  | 'requestTimeoutMs'
  | 'uploadBytesPerSecondMin'
>;

/** `onRefused`: called for each body that is refused because there is no room, or because it is too slow. */
export function addRequestBodies(
  server: FastifyInstance,
  limits: Limits,
  onRefused: (why: BodyRefusal) => void,
): RequestBodies {
  const bodies = new Bodies(limits, onRefused);
  server.decorate('requestBodies', bodies);
  server.addHook('onClose', (_server, done) => {
    bodies.close();
    done();
  });
  return bodies;
}

class Bodies implements RequestBodies {
  readonly limits: Limits;
  readonly memory: BodyMemory;
  readonly onRefused: (why: BodyRefusal) => void;
  readonly turnMs: number;
  readonly #arriving = new PlacedList<ArrivingBody>();
  #timer: NodeJS.Timeout | null = null;

  constructor(limits: Limits, onRefused: (why: BodyRefusal) => void) {
    this.limits = limits;
    this.onRefused = onRefused;
    this.memory = createBodyMemory(limits, onRefused);
    this.turnMs = Math.min(TURN_MS, Math.ceil(limits.requestTimeoutMs / 2));
  }

  heldBytes(): number {
    return this.memory.used();
  }

  expect(request: FastifyRequest, reply: FastifyReply): void {
    const length = lengthOf(request);
    if (length !== null && length <= SMALL_BYTES) return;
    const held = new HeldBody();
    (request as Holding)[HELD] = held;
    let over = false;
    const leave = () => {
      if (!over) held.leave();
      over = true;
    };
    // A request from inside this process has no 'close', and one whose client has left has no 'finish'.
    reply.raw.once('finish', leave);
    reply.raw.once('close', leave);
  }

  read(request: FastifyRequest, payload: Readable, weight: number, done: Done): void {
    let body: ArrivingBody;
    try {
      body = new ArrivingBody(this, request, payload, weight, done);
    } catch (error) {
      return done(error as Error);
    }
    body.begin();
  }

  openFiles(account: string, network: string | null): FileMemory {
    const hold = this.memory.open(account, network);
    let held = 0;
    return {
      grow: (bytes) => {
        this.memory.take(hold, held + bytes);
        held += bytes;
      },
      release: () => hold.release(),
    };
  }

  arrives(body: ArrivingBody): void {
    this.#arriving.add(body);
    this.#timer ??= setInterval(() => this.#turn(), this.turnMs).unref();
  }

  arrived(body: ArrivingBody): void {
    this.#arriving.remove(body);
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #turn(): void {
    if (this.#arriving.items.length === 0) return this.close();
    // From the last one on, because a body that ends leaves the list, and the last one takes its place.
    for (let place = this.#arriving.items.length - 1; place >= 0; place--) this.#arriving.items[place]?.turn();
  }
}

/** One body while it arrives. */
class ArrivingBody implements Placed {
  place = -1;
  readonly #bodies: Bodies;
  readonly #request: FastifyRequest;
  readonly #payload: Readable;
  readonly #weight: number;
  readonly #done: Done;
  /** By its content-length; null for a chunked body. */
  readonly #length: number | null;
  readonly #bytesMax: number;
  /** Counts a body above 64 KiB, or one that is still arriving at the second turn. */
  #hold: MemoryHold | null = null;
  /** The bytes, if the length is known. */
  #whole: Buffer | null = null;
  /** The bytes of a chunked body, in full pieces and one that is being filled. */
  #pieces: Buffer[] = [];
  #filled = 0;
  #chunks = 0;
  #received = 0;
  #turns = -1;
  #receivedBefore = 0;
  readonly #onData = (chunk: Buffer) => this.#data(chunk);
  readonly #onEnd = () => this.#end();
  readonly #onError = (error: Error) => this.#fail(Object.assign(error, { statusCode: 400 }));

  /** Throws GatewayError for a body that is refused before it is read. */
  constructor(bodies: Bodies, request: FastifyRequest, payload: Readable, weight: number, done: Done) {
    this.#bodies = bodies;
    this.#request = request;
    this.#payload = payload;
    this.#weight = weight;
    this.#done = done;
    this.#length = lengthOf(request);
    this.#bytesMax =
      this.#length !== null && this.#length <= SMALL_BYTES ? SMALL_BYTES : largestOf(request, bodies.limits);
    if (this.#length === null || this.#length <= SMALL_BYTES) return;
    if (this.#length > this.#bytesMax) throw this.#tooLarge();
    this.#takes(this.#length);
  }

  begin(): void {
    this.#bodies.arrives(this);
    const payload = this.#payload;
    payload.on('data', this.#onData);
    payload.on('end', this.#onEnd);
    payload.on('error', this.#onError);
    payload.resume();
  }

  /** Looks at how fast the body arrives. */
  turn(): void {
    const { turnMs, limits } = this.#bodies;
    this.#turns += 1;
    const large = Math.max(this.#length ?? 0, this.#received) > SMALL_BYTES;
    const turns = Math.max(
      1,
      Math.ceil((large ? Math.min(WINDOW_MS, limits.requestTimeoutMs) : limits.requestTimeoutMs) / turnMs),
    );
    if (this.#turns >= turns) {
      const least = (limits.uploadBytesPerSecondMin * turns * turnMs) / 1_000;
      if (!large || this.#received - this.#receivedBefore < least) return this.#tooSlow(large);
      this.#turns = 0;
      this.#receivedBefore = this.#received;
    }
    if (this.#turns < 1 || this.#hold !== null) return;
    try {
      this.#takes(this.#length ?? SMALL_BYTES);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #tooSlow(large: boolean): void {
    const { limits, onRefused } = this.#bodies;
    onRefused('slow');
    // The client does not send the rest soon, so the connection is closed with the answer.
    endConnectionOf(this.#request.raw);
    this.#fail(
      new GatewayError(
        'request_timeout',
        large
          ? `The body arrives with less than ${limits.uploadBytesPerSecondMin} bytes per second: send it faster. The operator sets this with limits.upload_bytes_per_second_min`
          : 'The body did not arrive in time. The operator sets this time with limits.request_timeout_ms',
      ),
    );
  }

  /** Asks for memory for a body of `bytes`. Throws GatewayError without room. */
  #takes(bytes: number): void {
    const { memory } = this.#bodies;
    if (this.#hold === null) {
      const caller = callerOf(this.#request);
      const account = caller === undefined || caller.anonymous ? null : caller.account;
      this.#hold = memory.open(account, clientNetworkOf(this.#request));
    }
    try {
      memory.take(this.#hold, bytes * this.#weight);
    } catch (error) {
      this.#hold.release();
      throw error;
    }
    const held = heldBodyOf(this.#request);
    if (held !== null) held.hold = this.#hold;
  }

  #data(chunk: Buffer): void {
    const received = this.#received + chunk.byteLength;
    if (this.#length === null) {
      this.#chunks += 1;
      if (this.#chunks > CHUNKS_FREE && received < this.#chunks * CHUNK_BYTES_MIN) return this.#fail(chunksTooSmall());
      if (received > this.#bytesMax) return this.#fail(this.#tooLarge());
      try {
        if (received > SMALL_BYTES) this.#takes(received);
      } catch (error) {
        return this.#fail(error as Error);
      }
      this.#gather(chunk);
    } else {
      // The bytes are copied, because the chunk is a part of a larger buffer of the socket.
      this.#whole ??=
        this.#length > SMALL_BYTES ? Buffer.allocUnsafeSlow(this.#length) : Buffer.allocUnsafe(this.#length);
      if (received > this.#length)
        return this.#fail(new GatewayError('invalid_request', 'The body is longer than its content-length'));
      chunk.copy(this.#whole, this.#received);
    }
    this.#received = received;
  }

  /**
   * Copies a chunk into pieces of 64 KiB. Each chunk of a chunked body takes about a hundred bytes of memory, whatever
   * its size, until the whole body has arrived: 10 MiB in chunks of one byte would take a gigabyte. Each chunk also
   * takes a microsecond to read, so a body of very small chunks is refused.
   */
  #gather(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.byteLength) {
      let piece = this.#pieces.at(-1);
      if (piece === undefined || this.#filled === piece.byteLength) {
        piece = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, Math.max(1024, 2 * (piece?.byteLength ?? 0))));
        this.#pieces.push(piece);
        this.#filled = 0;
      }
      const copied = chunk.copy(piece, this.#filled, at);
      this.#filled += copied;
      at += copied;
    }
  }

  #end(): void {
    if (this.#length !== null && this.#received !== this.#length)
      return this.#fail(new GatewayError('invalid_request', 'The body is shorter than its content-length'));
    const body = this.#length === null ? Buffer.concat(this.#pieces, this.#received) : (this.#whole ?? NOTHING);
    this.#over();
    // The memory of a small body that arrived slowly is not counted any more.
    if (heldBodyOf(this.#request) === null) this.#hold?.release();
    this.#done(null, body);
  }

  #fail(error: Error): void {
    this.#over();
    this.#hold?.release();
    this.#done(error);
  }

  #over(): void {
    this.#bodies.arrived(this);
    this.#pieces = [];
    this.#whole = null;
    const payload = this.#payload;
    payload.removeListener('data', this.#onData);
    payload.removeListener('end', this.#onEnd);
    payload.removeListener('error', this.#onError);
  }

  #tooLarge(): GatewayError {
    const { limits } = this.#bodies;
    const { bodyLimit } = this.#request.routeOptions;
    if (this.#bytesMax >= bodyLimit) return tooLarge(bodyLimit, limits);
    return new GatewayError(
      'payload_too_large',
      `A request without a credential and without a payment has at most ${this.#bytesMax} bytes. Send a key, or send the payment together with the request, in PAYMENT-SIGNATURE: a smaller request to this address shows the terms. The operator sets this with limits.anonymous_body_bytes_max`,
    );
  }
}

const NOTHING = Buffer.alloc(0);

/** The content-length of a request; null for a chunked body. Node accepts no other form of it. */
function lengthOf({ headers }: FastifyRequest): number | null {
  const length = headers['content-length'];
  return length === undefined ? (headers['transfer-encoding'] === undefined ? 0 : null) : Number(length);
}

/** The largest body that a request may have. */
function largestOf(request: FastifyRequest, { anonymousBodyBytesMax }: Limits): number {
  const { bodyLimit } = request.routeOptions;
  const paid =
    callerOf(request)?.anonymous === undefined || PAYMENT_HEADERS.some((name) => request.headers[name] !== undefined);
  return paid ? bodyLimit : Math.min(bodyLimit, anonymousBodyBytesMax);
}

const chunksTooSmall = () =>
  new GatewayError(
    'invalid_request',
    `The body comes in chunks of less than ${CHUNK_BYTES_MIN} bytes: send larger ones, or the whole with content-length`,
  );
