import { tooLarge } from '#wire';
import { malformed } from '#wire/replies';
import type { ReplyContext } from './chat-end.ts';

/**
 * The event loop reads a reply that is wanted as an object. The reply must be small enough not to delay other calls.
 */
const OBJECT_BYTES_MAX = 2 * 1024 * 1024;

/** Keeps the chunks of a body, up to the largest reply that the context allows. */
export class Collector {
  /** The number of bytes kept. */
  bytes = 0;
  readonly #bytesMax: number;
  #chunks: Uint8Array[] = [];
  /** Only white space has come so far. */
  #isBlank = true;

  constructor({ replyBytesMax, readFor }: Pick<ReplyContext, 'replyBytesMax' | 'readFor'>) {
    this.#bytesMax = readFor === undefined ? Math.min(replyBytesMax, OBJECT_BYTES_MAX) : replyBytesMax;
  }

  /**
   * Throws UpstreamFailure if the body becomes larger than the maximum: `tooLarge`, or a failure of the provider if
   * the whole body is white space. The last chunk is kept nevertheless.
   */
  push(chunk: Uint8Array): void {
    this.bytes += chunk.byteLength;
    this.#chunks.push(chunk);
    this.#isBlank &&= isBlank(chunk);
    if (this.bytes <= this.#bytesMax) return;
    if (this.#isBlank) throw malformed(`its reply had no output in ${this.#bytesMax} bytes`);
    throw tooLarge(`its reply is larger than ${this.#bytesMax} bytes`);
  }

  /** The whole body, in one buffer. */
  take(): Buffer {
    const [only] = this.#chunks;
    if (this.#chunks.length !== 1 || !only) return Buffer.concat(this.#chunks);
    return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
  }

  /** The whole body, copied into memory that can be transferred to another thread. */
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

/** The white space of JSON is this byte and bytes below it. All other bytes of JSON are above it. */
const SPACE = 0x20;
const isBlank = (chunk: Uint8Array): boolean => chunk.every((byte) => byte <= SPACE);
