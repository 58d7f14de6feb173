import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { GatewayError } from '#errors';
import { type TokenBucket, NetworkBudgets } from '#wire/budgets';

/** This many chunks may have any size. */
export const CHUNKS_FREE = 4_096;
/** With more chunks, their average size must be at least this. A smaller chunk is a small one. */
const CHUNK_BYTES_MIN = 64;
/** A chunk takes as long as the reading of so many bytes, beside its own. */
export const CHUNK_WEIGHT = 256;
/**
 * Small chunks of all bodies from one network. They are counted by so many, which one body may have in any case: few
 * clients send as many.
 */
const NETWORK_BUDGET = { atOnce: 10 * CHUNKS_FREE, perSecond: 10_000 };
const COUNTED_BY = 64;

const CHUNKS = Symbol('chunks of the body');
type Chunked = Readable & { [CHUNKS]?: BodyChunks };

/**
 * The chunks in which a body arrives (RFC 9112, section 7.1). Each takes some microseconds and a hundred bytes of
 * memory, whatever its size. A sender needs six bytes for a chunk of one, so the same bytes cost twenty times as much
 * as in large chunks: such a body is refused, wherever it is read.
 *
 * They are counted when they arrive, not when they are read: while a credential is checked, Node keeps 65,536 bytes of
 * a body, and in chunks of one byte these took 80 ms.
 */
export class BodyChunks {
  count = 0;
  /** There are many, and they are too small. No more are read from the connection unless it is resumed. */
  areTooSmall = false;
  #bytes = 0;
  #small = 0;
  /** All that still arrives is dropped. */
  isDropped = false;
  #budget: TokenBucket | null = null;
  readonly #body: IncomingMessage;
  readonly #network: () => TokenBucket;

  constructor(body: IncomingMessage, network: () => TokenBucket) {
    this.#body = body;
    this.#network = network;
  }

  add(bytes: number): void {
    this.count += 1;
    this.#bytes += bytes;
    if (this.count > CHUNKS_FREE && this.#bytes < this.count * CHUNK_BYTES_MIN) this.areTooSmall = true;
    if (bytes >= CHUNK_BYTES_MIN) return;
    this.#small += 1;
    if (this.#small % COUNTED_BY !== 0) return;
    // A socket that is closed has no address any more.
    const budget = (this.#budget ??= this.#network());
    budget.take(COUNTED_BY);
    if (budget.remaining() >= 0 || this.#body.socket.destroyed) return;
    this.areTooSmall = true;
    this.isDropped = true;
    this.#body.socket.destroy();
  }
}

/** The small chunks of all networks, for one server. */
export const createChunkBudgets = (): NetworkBudgets => new NetworkBudgets(NETWORK_BUDGET);

/** Begins to count the chunks of a body. The caller adds each. `network`: the budget of the client's network. */
export const beginChunks = (body: IncomingMessage & Chunked, network: () => TokenBucket): BodyChunks =>
  (body[CHUNKS] = new BodyChunks(body, network));

/** The chunks of a body; null if its length is known. */
export const chunksOf = (body: Chunked): BodyChunks | null => body[CHUNKS] ?? null;

export const chunksTooSmall = (): GatewayError =>
  new GatewayError(
    'invalid_request',
    `The body comes in chunks of less than ${CHUNK_BYTES_MIN} bytes: send larger ones, or the whole with content-length`,
  );
