import { tooLarge } from '#wire';
import type { ReplyContext } from './chat-end.ts';

/**
 * A reply that is wanted as an object is read by the event loop, so it may not be so large that others wait for it.
 */
const OBJECT_BYTES_MAX = 2 * 1024 * 1024;

export interface Collector {
  /** How many are kept. */
  bytes: number;
  /** Throws UpstreamFailure `tooLarge` with the chunk that goes beyond the largest reply. It is kept all the same. */
  push(chunk: Uint8Array): void;
  /** All of it, in one piece. */
  take(): Buffer;
  /** All of it, copied into memory that can be given to another thread. */
  giveAway(): ArrayBuffer;
  /** Takes back the bytes that were given away. */
  takeBack(bytes: ArrayBuffer): void;
}

/** Keeps the chunks of a body up to the largest reply that the context lets through. */
export function createCollector({
  replyBytesMax,
  readFor,
}: Pick<ReplyContext, 'replyBytesMax' | 'readFor'>): Collector {
  const bytesMax = readFor === undefined ? Math.min(replyBytesMax, OBJECT_BYTES_MAX) : replyBytesMax;
  const chunks: Uint8Array[] = [];
  return {
    bytes: 0,
    push(chunk) {
      this.bytes += chunk.byteLength;
      chunks.push(chunk);
      if (this.bytes > bytesMax) throw tooLarge(`its reply is larger than ${bytesMax} bytes`);
    },
    take() {
      const only = chunks[0];
      if (chunks.length !== 1 || !only) return Buffer.concat(chunks);
      return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
    },
    giveAway() {
      const all = new Uint8Array(this.bytes);
      let at = 0;
      for (const chunk of chunks) {
        all.set(chunk, at);
        at += chunk.byteLength;
      }
      chunks.length = 0;
      return all.buffer;
    },
    takeBack(bytes) {
      chunks.push(new Uint8Array(bytes));
    },
  };
}
