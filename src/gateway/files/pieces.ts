import type { ClientSink } from '#http';
import type { Blob, Blobs, ByteRange } from './blob.ts';

export type BodyPiece = Buffer | Blob;

export const pieceLength = (piece: BodyPiece): number => (Buffer.isBuffer(piece) ? piece.byteLength : piece.bytes);

/**
 * Writes a range of the joined pieces, as fast as the client reads. `end` of the range is inclusive. Resolves when
 * everything is written or the client is gone. If a file cannot be read before anything is written, rejects with
 * BlobUnreachable. Later, it closes the connection and rejects.
 */
export async function writePieces(
  blobs: Pick<Blobs, 'read'>,
  pieces: readonly BodyPiece[],
  { start, end }: ByteRange,
  sink: ClientSink,
  onHead: () => void,
): Promise<void> {
  let at = 0;
  let begun = false;
  /**
   * Bytes before the first file wait until the file is open, because the head must not be sent if the file cannot be
   * read.
   */
  const ahead: Buffer[] = [];
  /** After it resolves, the operating system has the bytes, so their memory can be reused. */
  const write = async (chunk: Uint8Array) => {
    if (!sink.write(chunk)) await sink.drained();
  };
  const begin = async () => {
    if (begun) return;
    begun = true;
    onHead();
    for (const chunk of ahead) await write(chunk);
  };
  const writeFile = async (blob: Blob, range: ByteRange) => {
    const file = await blobs.read(blob, range);
    try {
      if (sink.closed) return;
      await begin();
      let remaining = range.end - range.start + 1;
      for await (const chunk of file) {
        if (sink.closed) return;
        remaining -= chunk.byteLength;
        await write(chunk);
      }
      if (remaining !== 0) throw new Error(`the file ${blob.id} is shorter than it was`);
    } finally {
      file.destroy();
    }
  };
  try {
    for (const piece of pieces) {
      const length = pieceLength(piece);
      const from = Math.max(0, start - at);
      const to = Math.min(length - 1, end - at);
      at += length;
      if (from > to) continue;
      if (!Buffer.isBuffer(piece)) await writeFile(piece, { start: from, end: to });
      else if (begun) await write(piece.subarray(from, to + 1));
      else ahead.push(piece.subarray(from, to + 1));
      if (sink.closed) return;
    }
    await begin();
    sink.end('');
  } catch (error) {
    if (begun) sink.cut();
    throw error;
  }
}

/** Parses a Range header. `whole` if there is no range or it is not understood, `none` if it is outside the body. */
export function rangeOf(header: string | undefined, length: number): ByteRange | 'whole' | 'none' {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'whole';
  if (first === '') return Number(last) === 0 ? 'none' : { start: Math.max(0, length - Number(last)), end: length - 1 };
  const start = Number(first);
  const end = last === '' ? length - 1 : Math.min(Number(last), length - 1);
  if (last !== '' && Number(last) < start) return 'whole';
  return start >= length ? 'none' : { start, end };
}
