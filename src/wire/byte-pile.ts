/** Bytes kept from chunk to chunk of a stream. */
export interface BytePile {
  /** Filled up to `length`; replaced when it grows. */
  readonly bytes: Buffer;
  readonly length: number;
  /** Throws what `tooLong` makes when there would be more than `bytesMax`. */
  push(source: Buffer, start: number, end: number): void;
  clear(): void;
}

/** What an empty pile keeps for the next bytes. */
const KEPT_BYTES_MAX = 16 * 1024;

/** Grows by doubling, so that many small pieces cost no more than one large. */
export function createBytePile(bytesMax: number, tooLong: () => Error): BytePile {
  const pile = {
    bytes: Buffer.alloc(0),
    length: 0,
    push(source: Buffer, start: number, end: number) {
      const length = pile.length + end - start;
      if (length > bytesMax) throw tooLong();
      if (length > pile.bytes.length) {
        const grown = Buffer.allocUnsafeSlow(Math.max(512, length, pile.bytes.length * 2));
        pile.bytes.copy(grown, 0, 0, pile.length);
        pile.bytes = grown;
      }
      source.copy(pile.bytes, pile.length, start, end);
      pile.length = length;
    },
    clear() {
      pile.length = 0;
      if (pile.bytes.length > KEPT_BYTES_MAX) pile.bytes = Buffer.alloc(0);
    },
  };
  return pile;
}
