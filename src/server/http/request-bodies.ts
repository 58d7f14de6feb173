import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PlacedList, type Placed } from '#wire';
import { GatewayError } from '#errors';
import type { LimitsConfig } from '#config';
import { accountOf, clientNetworkOf } from './request-context.ts';
import {
  type BodyHold,
  type BodyMemory,
  type BodyRefusal,
  createBodyMemory,
  heldBy,
  type FullShare,
  begunFor,
} from './body-memory.ts';
import { CodedBodies, codingOfBody } from './coded-bodies.ts';
import { WaitingBodies, type WaitingBody } from './waiting-bodies.ts';
import { endConnectionOf } from './connections.ts';
import { type BodyChunks, chunksOf, chunksTooSmall } from './body-chunks.ts';
import { largestOf, lengthOf, tooLargeFor } from './body-sizes.ts';

type Limits = Pick<
  LimitsConfig,
  | 'anonymousBodyBytesMax'
  | 'bodiesBytesMax'
  | 'bodiesWaitingMax'
  | 'bodiesWaitMs'
  | 'bodyBytesMax'
  | 'chatBodyBytesMax'
  | 'mediaBodyBytesMax'
  | 'requestTimeoutMs'
  | 'uploadBytesPerSecondMin'
>;

/** How often the speed of each arriving body is measured. */
const TURN_MS = 500;

/** Reads the bodies of requests into memory that is counted. One for each server. */
export interface RequestBodies {
  /** Bytes that are held now for bodies above UNCOUNTED_BYTES, and for slow smaller ones. */
  heldBytes(): number;
  /** Number of bodies that wait for memory. */
  waitingCount(): number;
  /** Call this before the body is read, for each request with a body. */
  expect(request: FastifyRequest, reply: FastifyReply): void;
  read(request: FastifyRequest, payload: Readable, weight: number, done: BodyCallback): void;
  /**
   * Begins to count what a request takes into memory beside its body, such as files that the gateway fetches for it.
   * `account`, `network`: null if it is not known.
   */
  open(account: string | null, network: string | null): MoreMemory;
  /**
   * The same for a request whose handler begins. The handler must release it at its end. What it counts is held as long
   * as the body: until the calls have ended, too, that the request began.
   */
  beside(request: FastifyRequest): MoreMemory;
}

/** Memory that a request takes beside its body. */
export interface MoreMemory {
  /** Counts more bytes. Throws GatewayError `rate_limit_exceeded`, `service_unavailable` without room. */
  grow(bytes: number): void;
  /** Counts this many bytes in total, fewer or more than before. Throws like `grow`. */
  becomes(bytes: number): void;
  release(): void;
}

declare module 'fastify' {
  interface FastifyInstance {
    requestBodies: RequestBodies;
  }
}

/**
 * A parser of content that gives the bytes of a body. `weight`: the memory that the body takes while its request runs,
 * as a multiple of its bytes. The server must have request bodies, see addRequestBodies.
 */
export const readBytes =
  (weight: number) =>
  (request: FastifyRequest, payload: Readable, done: BodyCallback): void =>
    request.server.requestBodies.read(request, payload, weight, done);

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
  readonly waiting: WaitingBodies;
  readonly onRefused: (why: BodyRefusal) => void;
  readonly #coded = new CodedBodies();
  /** How often `turn` of each arriving body is called. */
  readonly turnMs: number;
  readonly #arriving = new PlacedList<ArrivingBody>();
  #timer: NodeJS.Timeout | null = null;

  constructor(limits: Limits, onRefused: (why: BodyRefusal) => void) {
    this.limits = limits;
    this.onRefused = onRefused;
    this.waiting = new WaitingBodies(limits);
    this.memory = createBodyMemory(limits, onRefused, () => this.waiting.serve());
    this.turnMs = Math.min(TURN_MS, Math.ceil(limits.requestTimeoutMs / 2));
  }

  heldBytes(): number {
    return this.memory.used();
  }

  waitingCount(): number {
    return this.waiting.count;
  }

  expect(request: FastifyRequest, reply: FastifyReply): void {
    const length = lengthOf(request);
    if (length !== null && length <= UNCOUNTED_BYTES && codingOfBody(request) === null) return;
    const leave = heldBy(request).keep();
    // A request from inside this process has no 'close', and one whose client has left has no 'finish'.
    reply.raw.once('finish', leave);
    reply.raw.once('close', leave);
  }

  read(request: FastifyRequest, payload: Readable, weight: number, done: BodyCallback): void {
    let body: ArrivingBody;
    try {
      const coding = codingOfBody(request);
      const arrived: BodyCallback =
        coding === null
          ? done
          : (failed, coded = NOTHING) =>
              failed ? done(failed) : void this.#decode(request, coded, coding, weight, done);
      body = new ArrivingBody(this, request, payload, weight, arrived);
    } catch (error) {
      return done(error as Error);
    }
    body.arrive();
  }

  /** Passes on the content of a coded body. Both are counted as long as they are in memory. */
  async #decode(
    request: FastifyRequest,
    coded: Buffer,
    coding: string,
    weight: number,
    done: BodyCallback,
  ): Promise<void> {
    const held = heldBy(request);
    const bytesMax = largestOf(request, this.limits);
    let content: Buffer;
    try {
      content = await this.#coded.contentOf(coded, coding, {
        account: accountOf(request) ?? clientNetworkOf(request),
        bytesMax,
        grows: (bytes) => {
          if (bytes <= UNCOUNTED_BYTES) return;
          const counted = coded.byteLength + bytes * Math.max(CHUNKED_WEIGHT_MIN, weight);
          this.memory.take((held.hold ??= this.openFor(request)), counted);
        },
        tooLarge: () => tooLargeFor(request, bytesMax, this.limits),
      });
    } catch (error) {
      held.hold?.release();
      return done(error as Error);
    }
    held.bytes = held.hold === null ? 0 : content.byteLength * weight;
    held.hold?.shrinks(held.bytes);
    done(null, content);
  }

  open(account: string | null, network: string | null): MoreMemory {
    const hold = this.memory.open(account, network);
    return { ...this.#counts(() => hold, 0), release: () => hold.release() };
  }

  beside(request: FastifyRequest): MoreMemory {
    const held = heldBy(request);
    const release = held.keep();
    // The body and the rest are one hold: the first hold of a share gets room even if it alone is larger.
    return { ...this.#counts(() => (held.hold ??= this.openFor(request)), held.bytes), release };
  }

  openFor(request: FastifyRequest): BodyHold {
    return this.memory.open(accountOf(request), clientNetworkOf(request));
  }

  /** Counts in a hold that has `others` bytes for something else. */
  #counts(hold: () => BodyHold, others: number): Pick<MoreMemory, 'becomes' | 'grow'> {
    let held = 0;
    const becomes = (bytes: number) => {
      if (bytes > held) this.memory.take(hold(), others + bytes);
      else if (bytes < held) hold().shrinks(others + bytes);
      held = bytes;
    };
    return { becomes, grow: (bytes) => becomes(held + bytes) };
  }

  arrives(body: ArrivingBody): void {
    this.#arriving.add(body);
    this.#timer ??= setInterval(() => this.#turn(), this.turnMs).unref();
  }

  arrived(body: ArrivingBody): void {
    this.#arriving.remove(body);
  }

  close(): void {
    this.waiting.close();
    this.#stop();
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #turn(): void {
    if (this.#arriving.items.length === 0) return this.#stop();
    // From the last one on, because a body that ends leaves the list, and the last one takes its place.
    for (let place = this.#arriving.items.length - 1; place >= 0; place--) this.#arriving.items[place]?.turn();
  }
}

/**
 * A body up to this size is not counted if it arrives quickly, so the usual small call pays nothing for the count. Its
 * call holds about twice the body: its bytes for the provider and its values. A call takes 30 KB and its connections
 * beside that, so bodies that are not counted add half to what open calls take anyway. How many of these an account can
 * have is bounded by its rate and by `upstream.call_timeout_ms`: at the defaults 6,000, which is 100 MB of such bodies.
 */
export const UNCOUNTED_BYTES = 8 * 1024;
/**
 * A larger body must keep up a least speed while it arrives, and waits for its turn. One up to this size has most of
 * its bytes in the buffers of its connection when its head is read, so it takes its memory at once, if there is room.
 */
const SMALL_BYTES = 64 * 1024;
/** The speed of a larger body is its average over this time. */
const WINDOW_MS = 10_000;

/* Limits of a chunked body, see #gather. */
const PIECE_BYTES = 64 * 1024;
/** When it has arrived, its pieces and the whole are in memory together. */
const CHUNKED_WEIGHT_MIN = 2;

type BodyCallback = (error: Error | null, body?: Buffer) => void;

/** One body while it arrives. */
class ArrivingBody implements Placed, WaitingBody {
  place = -1;
  readonly #bodies: Bodies;
  readonly #request: FastifyRequest;
  readonly #payload: Readable;
  readonly #weight: number;
  readonly #done: BodyCallback;
  /** By its content-length; null for a chunked body. */
  readonly #length: number | null;
  readonly #bytesMax: number;
  /** Counts a body above UNCOUNTED_BYTES, or one that is still arriving at the second turn. */
  #hold: BodyHold | null = null;
  /** The bytes, if the length is known. */
  #whole: Buffer | null = null;
  /** The bytes of a chunked body, in full pieces and one that is being filled. */
  #pieces: Buffer[] = [];
  #filled = 0;
  /** null: the length is known. */
  readonly #chunks: BodyChunks | null;
  #received = 0;
  #turns = -1;
  #receivedBefore = 0;
  readonly #onData = (chunk: Buffer) => this.#data(chunk);
  readonly #onEnd = () => this.#end();
  readonly #onError = (error: Error) => this.#fail(Object.assign(error, { statusCode: 400 }));

  /** The client left while its body waits. This is noticed only if what came of the body fits in the buffers. */
  readonly #onLeft = () => {
    this.#bodies.waiting.leave(this);
    this.#stopWaiting();
    this.#done(Object.assign(new Error('The client has left'), { statusCode: 400 }));
  };

  /** Throws GatewayError for a body that is too large. */
  constructor(bodies: Bodies, request: FastifyRequest, payload: Readable, weight: number, done: BodyCallback) {
    this.#bodies = bodies;
    this.#request = request;
    this.#payload = payload;
    this.#weight = weight;
    this.#done = done;
    this.#length = lengthOf(request);
    this.#chunks = chunksOf(payload);
    this.#bytesMax =
      this.#length !== null && this.#length <= SMALL_BYTES ? SMALL_BYTES : largestOf(request, bodies.limits);
    if (this.#length === null || this.#length <= SMALL_BYTES) return;
    if (this.#length > this.#bytesMax) throw this.#tooLarge();
  }

  get network(): string {
    return clientNetworkOf(this.#request);
  }

  get account(): string {
    return accountOf(this.#request) ?? '';
  }

  /** Reads the body as soon as there is memory for it. A chunked body and an uncounted one are read at once. */
  arrive(): void {
    if (this.#length === null || this.#length <= UNCOUNTED_BYTES) return this.begin();
    if (this.#length <= SMALL_BYTES && this.take() === null) return this.begin();
    this.#payload.once('error', this.#onLeft);
    this.#payload.once('close', this.#onLeft);
    this.#bodies.waiting.enter(this);
  }

  take(): FullShare | null {
    const hold = this.#bodies.openFor(this.#request);
    const full = this.#bodies.memory.lacks(hold, this.#length! * this.#weight);
    if (full === null) this.#holds(hold, this.#length!);
    else hold.release();
    return full;
  }

  refuse(full: FullShare): void {
    this.#stopWaiting();
    this.#done(this.#bodies.memory.refusal(full));
  }

  begin(): void {
    this.#stopWaiting();
    this.#bodies.arrives(this);
    const payload = this.#payload;
    payload.on('data', this.#onData);
    payload.on('end', this.#onEnd);
    payload.on('error', this.#onError);
    payload.resume();
  }

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
    const { limits } = this.#bodies;
    this.#bodies.onRefused('slow');
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
    this.#hold ??= this.#bodies.openFor(this.#request);
    try {
      this.#bodies.memory.take(this.#hold, this.#counted(bytes));
    } catch (error) {
      this.#hold.release();
      throw error;
    }
    this.#holds(this.#hold, bytes);
  }

  #holds(hold: BodyHold, bytes: number): void {
    this.#hold = hold;
    const held = begunFor(this.#request);
    if (held === undefined) return;
    held.hold = hold;
    held.bytes = this.#counted(bytes);
  }

  /** The bytes that are counted while the body arrives. */
  #counted(bytes: number): number {
    return bytes * (this.#length === null ? Math.max(CHUNKED_WEIGHT_MIN, this.#weight) : this.#weight);
  }

  /** Only the whole of a chunked body is left. */
  #countWhole(): void {
    const bytes = this.#received * this.#weight;
    this.#hold?.shrinks(bytes);
    const held = begunFor(this.#request);
    if (held !== undefined && held.hold !== null) held.bytes = Math.min(held.bytes, bytes);
  }

  #stopWaiting(): void {
    this.#payload.removeListener('error', this.#onLeft);
    this.#payload.removeListener('close', this.#onLeft);
  }

  #data(chunk: Buffer): void {
    const received = this.#received + chunk.byteLength;
    if (this.#length === null) {
      if (this.#chunks?.areTooSmall === true) return this.#fail(chunksTooSmall());
      if (received > this.#bytesMax) return this.#fail(this.#tooLarge());
      try {
        if (received > UNCOUNTED_BYTES) this.#takes(received);
      } catch (error) {
        return this.#fail(error as Error);
      }
      this.#gather(chunk);
    } else {
      const length = this.#length;
      // The bytes are copied, because the chunk is a part of a larger buffer of the socket.
      this.#whole ??= length > SMALL_BYTES ? Buffer.allocUnsafeSlow(length) : Buffer.allocUnsafe(length);
      if (received > length)
        return this.#fail(new GatewayError('invalid_request', 'The body is longer than its content-length'));
      chunk.copy(this.#whole, this.#received);
    }
    this.#received = received;
  }

  /**
   * Copies a chunk into pieces of 64 KiB. Each chunk of a chunked body takes about a hundred bytes of memory, whatever
   * its size, until the whole body has arrived: 10 MiB in chunks of one byte would take a gigabyte.
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
    if (this.#length === null) this.#countWhole();
    // The memory of an uncounted body that arrived slowly is not counted any more.
    if (begunFor(this.#request) === undefined) this.#hold?.release();
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
    return tooLargeFor(this.#request, this.#bytesMax, this.#bodies.limits);
  }
}

const NOTHING = Buffer.alloc(0);
