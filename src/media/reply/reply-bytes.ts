/** The bytes of a reply as it arrives. */
export interface ReplyBytes {
  readonly length: number;
  push(chunk: Uint8Array): void;
  /** All of them in one piece. Yields between pieces of work. */
  take(): Generator<void, Buffer, undefined>;
}

/** Bytes that are copied in one turn of the event loop. New memory takes longer than the copy. */
const TURN_BYTES = 1024 * 1024;

/**
 * `declared`: the length that its provider tells; null for none. Bytes of a reply that has so many go to their place
 * as they arrive: one copy of 40 MB at the end would hold up every stream of the process. More than `bytesMax` are
 * not reserved.
 */
export function createReplyBytes(declared: number | null, bytesMax: number): ReplyBytes {
  const whole = declared !== null && declared <= bytesMax ? Buffer.allocUnsafeSlow(declared) : null;
  /** Bytes that do not fit there. */
  const chunks: Uint8Array[] = [];
  let placed = 0;
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(chunk) {
      const { byteLength } = chunk;
      if (whole !== null && chunks.length === 0 && placed + byteLength <= whole.length) {
        whole.set(chunk, placed);
        placed += byteLength;
      } else chunks.push(chunk);
      length += byteLength;
    },
    *take() {
      const given = whole?.subarray(0, placed) ?? null;
      if (given !== null && chunks.length === 0) return given;
      const parts = given === null ? chunks.splice(0) : [given, ...chunks.splice(0)];
      const bytes = Buffer.allocUnsafeSlow(length);
      let at = 0;
      for (const part of parts)
        for (let from = 0; from < part.byteLength; from += TURN_BYTES) {
          const piece = part.subarray(from, from + TURN_BYTES);
          const turn = Math.floor(at / TURN_BYTES);
          bytes.set(piece, at);
          at += piece.byteLength;
          if (Math.floor(at / TURN_BYTES) > turn) yield;
        }
      return bytes;
    },
  };
}
