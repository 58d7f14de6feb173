import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PlacedList } from '#wire';
import type { LimitsConfig } from '#config';
import type { MemoryHold } from '../held-memory.ts';
import { accountOf, clientNetworkOf } from './admission-of-request.ts';
import {
  type ArrivalLimits,
  type Arrivals,
  ArrivingBody,
  type Done,
  lengthOf,
  UNCOUNTED_BYTES,
} from './arriving-body.ts';
import { type BodyMemory, type BodyRefusal, createBodyMemory } from './body-memory.ts';
import { heldBy } from './held-body.ts';
import { WaitingBodies } from './waiting-bodies.ts';

const TURN_MS = 500;

/** Reads the bodies of requests into memory that is counted. One for each server. */
export interface RequestBodies {
  /** Bytes that are held now for bodies above UNCOUNTED_BYTES, and for slow smaller ones. */
  heldBytes(): number;
  /** Number of bodies that wait for memory. */
  waitingCount(): number;
  /** To be called before the body is read, for each request with a body. */
  expect(request: FastifyRequest, reply: FastifyReply): void;
  read(request: FastifyRequest, payload: Readable, weight: number, done: Done): void;
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
  /** Gives all of it back. */
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
  (request: FastifyRequest, payload: Readable, done: Done): void =>
    request.server.requestBodies.read(request, payload, weight, done);

type Limits = ArrivalLimits & Pick<LimitsConfig, 'bodiesBytesMax' | 'bodiesWaitMs' | 'bodiesWaitingMax'>;

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

class Bodies implements RequestBodies, Arrivals {
  readonly limits: Limits;
  readonly memory: BodyMemory;
  readonly waiting: WaitingBodies;
  readonly onRefused: (why: BodyRefusal) => void;
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
    if (length !== null && length <= UNCOUNTED_BYTES) return;
    const leave = heldBy(request).keep();
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
    body.arrive();
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

  openFor(request: FastifyRequest): MemoryHold {
    return this.memory.open(accountOf(request), clientNetworkOf(request));
  }

  /** Counts in a hold that has `others` bytes for something else. */
  #counts(hold: () => MemoryHold, others: number): Pick<MoreMemory, 'becomes' | 'grow'> {
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
