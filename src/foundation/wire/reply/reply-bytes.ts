export interface ReplyBytes {
  readonly length: number;
  push(chunk: Uint8Array): void;
  /** All bytes in one buffer. Yields between pieces of work. */
  take(): Generator<void, Buffer, undefined>;
}

/** Bytes that are copied in one turn of the event loop. Allocating the memory takes longer than the copy. */
const TURN_BYTES = 1024 * 1024;
/** The first allocation for a reply whose length is not known. */
const FIRST_BYTES = 16 * 1024;
/** Buffers of at least this size use memory that V8 does not count, up to `UNSEEN_BYTES_MAX` in all. */
const UNSEEN_BYTES = 512 * 1024;
const UNSEEN_BYTES_MAX = 192 * 1024 * 1024;

/**
 * `declared`: the length that the provider states; null without one. If it is at most `bytesMax`, all memory is
 * reserved first, and bytes go to their place as they arrive. Otherwise one copy of 40 MB at the end would block all
 * streams of the process. Chunks are copied in any case, because each chunk that is kept would have its own memory,
 * which only a full collection frees.
 */
export function createReplyBytes(declared: number | null, bytesMax: number): ReplyBytes {
  const parts: Buffer[] = [];
  let last = declared !== null && declared <= bytesMax ? newMemory(declared) : EMPTY;
  let filled = 0;
  const reply: ReplyBytes & { length: number } = {
    length: 0,
    push(chunk) {
      for (let at = 0; at < chunk.byteLength;) {
        if (filled === last.length) {
          if (filled > 0) parts.push(last);
          last = newMemory(Math.max(FIRST_BYTES, Math.min(TURN_BYTES, reply.length)));
          filled = 0;
        }
        const piece = chunk.subarray(at, at + last.length - filled);
        last.set(piece, filled);
        filled += piece.byteLength;
        at += piece.byteLength;
        reply.length += piece.byteLength;
      }
    },
    take: () => joined(parts, last.subarray(0, filled), reply.length),
  };
  return reply;
}

/** Joins all parts in one buffer. It empties `parts`, so that the reader does not keep them. */
function* joined(parts: Buffer[], end: Buffer, length: number): Generator<void, Buffer, undefined> {
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
}

const EMPTY = Buffer.alloc(0);

/** Bytes of the memory that V8 does not count, and that is not collected yet. */
let unseenBytes = 0;
const unseen = new FinalizationRegistry<number>((bytes) => {
  unseenBytes -= bytes;
});

/**
 * V8 counts the memory of buffers outside of its heap, and begins a full collection after about 40 MB of it. Each
 * large image would cost 40 ms of the event loop, while there is hardly anything to collect. V8 does not count
 * memory that threads can share, so large buffers use such memory. If much of it waits to be collected, the next
 * buffer uses counted memory, so that a collection begins.
 */
function newMemory(bytes: number): Buffer {
  if (bytes < UNSEEN_BYTES || unseenBytes + bytes > UNSEEN_BYTES_MAX) return Buffer.allocUnsafeSlow(bytes);
  const memory = new SharedArrayBuffer(bytes);
  unseenBytes += bytes;
  unseen.register(memory, bytes);
  return Buffer.from(memory);
}
