import { tooLarge } from '#wire';
import { malformed } from '#wire/replies';
import type { ReplyContext } from './chat-end.ts';

/**
 * A reply that is wanted as an object is read by the event loop, so it may not be so large that others wait for it.
 */
const OBJECT_BYTES_MAX = 2 * 1024 * 1024;

/** Keeps the chunks of a body up to the largest reply that the context lets through. */
export class Collector {
  /** How many are kept. */
  bytes = 0;
  readonly #bytesMax: number;
  #chunks: Uint8Array[] = [];
  /** Nothing but white space came so far. */
  #isBlank = true;

  constructor({ replyBytesMax, readFor }: Pick<ReplyContext, 'replyBytesMax' | 'readFor'>) {
    this.#bytesMax = readFor === undefined ? Math.min(replyBytesMax, OBJECT_BYTES_MAX) : replyBytesMax;
  }

  /**
   * Throws UpstreamFailure with the chunk that goes beyond the largest reply: `tooLarge`, or the provider's failure
   * where all of it is white space. The chunk is kept all the same.
   */
  push(chunk: Uint8Array): void {
    this.bytes += chunk.byteLength;
    this.#chunks.push(chunk);
    this.#isBlank &&= isBlank(chunk);
    if (this.bytes <= this.#bytesMax) return;
    if (this.#isBlank) throw malformed(`its reply said nothing in ${this.#bytesMax} bytes`);
    throw tooLarge(`its reply is larger than ${this.#bytesMax} bytes`);
  }

  /** All of it, in one piece. */
  take(): Buffer {
    const [only] = this.#chunks;
    if (this.#chunks.length !== 1 || !only) return Buffer.concat(this.#chunks);
    return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
  }

  /** All of it, copied into memory that can be given to another thread. */
  giveAway(): ArrayBuffer {
    const all = new Uint8Array(this.bytes);
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.byteLength;
    }
    this.#chunks = [];
    return all.buffer;
  }

  /** Takes back the bytes that were given away. */
  takeBack(bytes: ArrayBuffer): void {
    this.#chunks.push(new Uint8Array(bytes));
  }
}

/** The white space of JSON: every other byte of it is above the space. */
const SPACE = 0x20;
const isBlank = (chunk: Uint8Array): boolean => chunk.every((byte) => byte <= SPACE);
