import type { Readable } from 'node:stream';

/** Bytes of a pipe that are read in one turn of the event loop: even 16,384 empty lines hold up nobody. */
export const PIECE_BYTES = 16 * 1024;

/**
 * Reads a pipe in pieces of at most PIECE_BYTES, one in each turn of the event loop. After `bytesMax` it stops, says so
 * with the last piece, and goes on when the returned function is called, for as much again.
 */
export function readPaced(
  pipe: Readable,
  bytesMax: number,
  take: (piece: Buffer, isLast: boolean) => void,
): () => void {
  let remaining = bytesMax;
  let next: NodeJS.Immediate | null = null;
  const read = () => {
    next = null;
    if (remaining === 0) return;
    const piece = pipe.read(Math.min(PIECE_BYTES, remaining, pipe.readableLength)) as Buffer | null;
    if (piece === null) return;
    next = setImmediate(read);
    remaining -= piece.byteLength;
    take(piece, remaining === 0);
  };
  pipe.on('readable', () => void (next ?? read()));
  return () => {
    remaining = bytesMax;
    if (next === null) read();
  };
}
