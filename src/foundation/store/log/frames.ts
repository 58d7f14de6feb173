import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompressSync } from 'node:zlib';

// Compressed files of the log have the seekable format of zstd (contrib/seekable_format of facebook/zstd): frames, and
// behind them a skippable frame with a table of their lengths. So a reader in the middle of a file decompresses a MiB
// and not 64. Every tool that knows zstd reads the file.

/** The bytes of a file, from its beginning. Both limits of `read` are offsets. */
export interface FileBytes {
  readonly byteLength: number;
  readonly read: (from: number, to: number) => Buffer;
}

const SKIPPABLE = 0x18_4d_2a_5e;
const SEEKABLE = 0x8f_92_ea_b1;
/** The magic number of a skippable frame, and its length. */
const HEAD_BYTES = 8;
/** The lengths of a frame: compressed, plain. */
const ENTRY_BYTES = 8;
/** The number of frames, a byte of flags, and the magic number of the format. */
const FOOT_BYTES = 9;

const compress = promisify<Buffer, Buffer>(zstdCompress);

/** Each piece becomes a frame. */
export async function* compressFrames(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const lengths: number[] = [];
  for await (const piece of pieces) {
    const frame = await compress(piece);
    lengths.push(frame.byteLength, piece.byteLength);
    yield frame;
  }
  const content = lengths.length * 4 + FOOT_BYTES;
  const table = Buffer.alloc(HEAD_BYTES + content);
  let at = table.writeUInt32LE(SKIPPABLE);
  for (const value of [content, ...lengths, lengths.length / 2]) at = table.writeUInt32LE(value, at);
  table.writeUInt32LE(SEEKABLE, at + 1);
  yield table;
}

/** A compressed file. One without a table is decompressed at once, as a single frame. */
export function openFrames(path: string): FileBytes {
  const table = withFile(path, (file) => readTable(file, fstatSync(file).size));
  if (table === null) {
    const bytes = zstdDecompressSync(withFile(path, (file) => readBytes(file, 0, fstatSync(file).size)));
    return { byteLength: bytes.byteLength, read: (from, to) => bytes.subarray(from, to) };
  }
  const { frames, byteLength } = table;
  let last: { readonly frame: Frame; readonly bytes: Buffer } | null = null;
  const bytesOf = (frame: Frame): Buffer => {
    if (last?.frame !== frame)
      last = { frame, bytes: zstdDecompressSync(withFile(path, (file) => readBytes(file, frame.at, frame.end))) };
    return last.bytes;
  };
  return {
    byteLength,
    read(from, to) {
      const parts = frames
        .filter(({ start, length }) => start < to && start + length > from)
        .map((frame) => bytesOf(frame).subarray(Math.max(0, from - frame.start), to - frame.start));
      return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    },
  };
}

/** One frame: its offsets in the file, and the offset and length of its plain bytes. */
interface Frame {
  readonly at: number;
  readonly end: number;
  readonly start: number;
  readonly length: number;
}

/** null for a file that does not end with a table. */
function readTable(
  file: number,
  size: number,
): { readonly frames: readonly Frame[]; readonly byteLength: number } | null {
  if (size < FOOT_BYTES) return null;
  const foot = readBytes(file, size - FOOT_BYTES, size);
  if (foot.readUInt32LE(5) !== SEEKABLE) return null;
  const entries = readBytes(file, size - FOOT_BYTES - foot.readUInt32LE() * ENTRY_BYTES, size - FOOT_BYTES);
  const frames: Frame[] = [];
  let [at, start] = [0, 0];
  for (let entry = 0; entry < entries.byteLength; entry += ENTRY_BYTES) {
    const end = at + entries.readUInt32LE(entry);
    const length = entries.readUInt32LE(entry + 4);
    frames.push({ at, end, start, length });
    [at, start] = [end, start + length];
  }
  return { frames, byteLength: start };
}

/** Bytes between two offsets of a file, or those that it has of them. */
export function readBytes(file: number, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(to - from);
  let length = 0;
  for (let count = 1; count > 0 && length < bytes.byteLength; length += count)
    count = readSync(file, bytes, length, bytes.byteLength - length, from + length);
  return bytes.subarray(0, length);
}

/** Throws what opening the file throws. */
export function withFile<T>(path: string, use: (file: number) => T): T {
  const file = openSync(path, 'r');
  try {
    return use(file);
  } finally {
    closeSync(file);
  }
}
