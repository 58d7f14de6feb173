export const MIB = 1024 * 1024;

/**
 * Fills the space between the opening and the closing of a text, so that the whole has about `bytes` bytes but not
 * more.
 */
export function filled(open: string, close: string, bytes: number, pieceAt: (index: number) => string): Buffer {
  const pieces = [open];
  let length = open.length + close.length;
  for (let index = 0; ; index++) {
    const piece = pieceAt(index);
    const more = Buffer.byteLength(piece);
    if (piece === '' || length + more > bytes) break;
    pieces.push(piece);
    length += more;
  }
  return Buffer.from(pieces.join('') + close);
}

/** Returns the same pieces again and again. */
export const repeated = (piece: string, times = 64) => {
  const many = piece.repeat(times);
  return () => many;
};

/** Returns this many pieces and then empty ones. */
export const upTo = (count: number, pieceAt: (index: number) => string) => (index: number) =>
  index < count ? pieceAt(index) : '';
