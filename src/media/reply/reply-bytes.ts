/** The bytes of a reply as it arrives. */
export interface ReplyBytes {
  readonly length: number;
  push(chunk: Uint8Array): void;
  /** All of them in one piece. Yields between pieces of work. */
  take(): Generator<void, Buffer, undefined>;
}

/** Bytes that are copied in one turn of the event loop. New memory takes longer than the copy. */
const TURN_BYTES = 1024 * 1024;
/** Of a reply whose length is not told. */
const FIRST_BYTES = 16 * 1024;
/** Memory from this size on is kept from the sight of V8, as far as there is no more than `UNSEEN_BYTES_MAX` of it. */
const UNSEEN_BYTES = 512 * 1024;
const UNSEEN_BYTES_MAX = 192 * 1024 * 1024;

/**
 * `declared`: the length that its provider tells; null for none. Bytes of a reply that has so many go to their place
 * as they arrive: one copy of 40 MB at the end would hold up every stream of the process. More than `bytesMax` are
 * not reserved. Chunks are copied in any case: each that is kept would have a memory of its own, which only a full
 * collection gives back.
 */
export function createReplyBytes(declared: number | null, bytesMax: number): ReplyBytes {
  const parts: Buffer[] = [];
  let last = declared !== null && declared <= bytesMax ? newMemory(declared) : EMPTY;
  let filled = 0;
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(chunk) {
      for (let at = 0; at < chunk.byteLength;) {
        if (filled === last.length) {
          if (filled > 0) parts.push(last);
          last = newMemory(Math.max(FIRST_BYTES, Math.min(TURN_BYTES, length)));
          filled = 0;
        }
        const piece = chunk.subarray(at, at + last.length - filled);
        last.set(piece, filled);
        filled += piece.byteLength;
        at += piece.byteLength;
        length += piece.byteLength;
      }
    },
    *take() {
      const end = last.subarray(0, filled);
      if (parts.length === 0) return end;
      const bytes = newMemory(length);
      let at = 0;
      for (const part of [...parts.splice(0), end])
        for (let from = 0; from < part.length; from += TURN_BYTES) {
          const piece = part.subarray(from, from + TURN_BYTES);
          bytes.set(piece, at);
          at += piece.length;
          if (part.length >= UNSEEN_BYTES) yield;
        }
      return bytes;
    },
  };
}

const EMPTY = Buffer.alloc(0);

/** Bytes of the memory that V8 does not see, and that is not collected yet. */
let unseenBytes = 0;
const unseen = new FinalizationRegistry<number>((bytes) => {
  unseenBytes -= bytes;
});

/**
 * V8 counts the memory of buffers beside its heap, and begins a full collection after some 40 MB of it: 40 ms of the
 * event loop for each large image, while there is hardly anything to collect. It does not count what could be shared
 * between threads. Where much of that waits to be collected, the next counts, so that a collection comes.
 */
function newMemory(bytes: number): Buffer {
  if (bytes < UNSEEN_BYTES || unseenBytes + bytes > UNSEEN_BYTES_MAX) return Buffer.allocUnsafeSlow(bytes);
  const memory = new SharedArrayBuffer(bytes);
  unseenBytes += bytes;
  unseen.register(memory, bytes);
  return Buffer.from(memory);
}
