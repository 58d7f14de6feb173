import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { Readable, Transform } from 'node:stream';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { ArchiveError, type ArchiveLine, lineText, parseLine } from './archive-lines.ts';

export interface WrittenFile {
  readonly bytes: number;
  readonly sha256: string;
  /** Digest of its lines without the seal. */
  readonly content: string;
}

/** Bytes of lines that are compressed at a time. */
const PIECE_BYTES = 64 * 1024;
/**
 * A window of 8 MB: the record of a call repeats what the journal has said of it, also if the call took a minute.
 * Level 6 makes files that are a tenth smaller than those of level 3.
 */
const PARAMS = {
  [constants.ZSTD_c_compressionLevel]: 6,
  [constants.ZSTD_c_windowLog]: 23,
  [constants.ZSTD_c_checksumFlag]: 1,
};
/**
 * One write at a time. A write that waits in the stream while it is ended ends the frame as well, and the end of the
 * stream then adds an empty frame, which Node 24 does not read: a change there would be found by no proof.
 */
const COMPRESSION = { params: PARAMS, writableHighWaterMark: 1 };

/**
 * Writes lines into a new file, and the seal that `sealOf` makes of their digest as the last one. The file is on the
 * disk when the promise resolves.
 */
export async function writeArchiveFile(
  path: string,
  lines: AsyncIterable<readonly ArchiveLine[]>,
  sealOf: (content: string) => string,
): Promise<WrittenFile> {
  let digest = '';
  const seal = (content: string) => sealOf((digest = content));
  const tap = measure();
  const file = await open(path, 'w', 0o600);
  // The pipeline closes the file, also after an error.
  await pipeline(
    Readable.from(piecesOf(lines, seal)),
    createZstdCompress(COMPRESSION),
    tap.stream,
    file.createWriteStream({ flush: true }),
  );
  return { ...tap.result(), content: digest };
}

async function* piecesOf(
  lines: AsyncIterable<readonly ArchiveLine[]>,
  sealOf: (content: string) => string,
): AsyncGenerator<Buffer, void, undefined> {
  const content = createHash('sha256');
  let text = '';
  const take = () => {
    const piece = Buffer.from(text);
    text = '';
    content.update(piece);
    return piece;
  };
  for await (const group of lines) {
    for (const line of group) text += `${lineText(line)}\n`;
    if (text.length >= PIECE_BYTES) yield take();
  }
  if (text !== '') yield take();
  yield Buffer.from(`${lineText(['seal', sealOf(content.digest('hex'))])}\n`);
}

/** Passes bytes on, and counts and digests them. An error of `onPart` ends the stream. */
function measure(onPart: (part: Buffer) => void = () => {}) {
  const digest: Hash = createHash('sha256');
  let bytes = 0;
  const stream = new Transform({
    transform(part: Buffer, _encoding, done) {
      digest.update(part);
      bytes += part.byteLength;
      try {
        onPart(part);
      } catch (error) {
        return done(error as Error);
      }
      done(null, part);
    },
  });
  return { stream, result: () => ({ bytes, sha256: digest.digest('hex') }) };
}

const ZSTD_MAGIC = 0xfd2fb528;
const NO_BYTES = Buffer.alloc(0);
/** Bytes of the size of the content, and of the id of a dictionary, by their flags in the header (RFC 8878, 3.1.1). */
const CONTENT_SIZES = [0, 2, 4, 8];
const DICTIONARY_IDS = [0, 1, 2, 4];
const RLE = 1;
const CHECKSUM_BYTES = 4;

/**
 * Takes the parts of a file in their order, and throws ArchiveError for bytes behind its frame of zstd. A decompressor
 * passes over zeros and empty frames there, so nothing else would say that the file was changed.
 */
function createFrameEnd(): (part: Buffer) => void {
  let stage: 'header' | 'blocks' | 'end' | 'other' = 'header';
  let held = NO_BYTES;
  /** Bytes to pass over before the next ones that are read. */
  let passed = 0;
  let checksum = 0;
  const read = (bytes: Buffer) => {
    if (stage === 'blocks') {
      const block = bytes.readUIntLE(0, 3);
      const type = (block >> 1) & 3;
      const isLast = (block & 1) === 1;
      passed = (type === RLE ? 1 : block >> 3) + (isLast ? checksum : 0);
      if (isLast) stage = 'end';
      return;
    }
    // Whatever is no frame of zstd is refused by the decompressor.
    if (bytes.readUInt32LE(0) !== ZSTD_MAGIC) return void (stage = 'other');
    const flags = bytes[4]!;
    const isSingle = (flags & 0x20) !== 0;
    const size = flags >> 6 === 0 && isSingle ? 1 : CONTENT_SIZES[flags >> 6]!;
    passed = (isSingle ? 0 : 1) + DICTIONARY_IDS[flags & 3]! + size;
    checksum = (flags & 4) === 0 ? 0 : CHECKSUM_BYTES;
    stage = 'blocks';
  };
  return (part) => {
    for (let at = 0; at < part.byteLength && stage !== 'other';) {
      if (passed > 0) {
        const some = Math.min(passed, part.byteLength - at);
        passed -= some;
        at += some;
        continue;
      }
      if (stage === 'end') throw new ArchiveError('bytes follow its end');
      const length = stage === 'header' ? 5 : 3;
      const more = part.subarray(at, at + length - held.byteLength);
      at += more.byteLength;
      held = Buffer.concat([held, more]);
      if (held.byteLength < length) return;
      read(held);
      held = NO_BYTES;
    }
  };
}

/** The longest line that is read: a group of the journal has at most some megabytes. */
const LINE_MAX = 256 * 1024 * 1024;
const LINE_END = 0x0a;

/**
 * Reads an archive: gives its lines to `onLine` in their order, at most as fast as `pace` lets it. Throws
 * ArchiveError if the file is not an archive, or was cut or changed.
 */
export async function readArchiveFile(
  path: string,
  onLine: (line: ArchiveLine) => void,
  pace: () => Promise<void> | undefined = () => undefined,
): Promise<WrittenFile> {
  const content = createHash('sha256');
  const tap = measure(createFrameEnd());
  let number = 0;
  let isSealed = false;
  const take = (bytes: Buffer) => {
    number += 1;
    if (isSealed) throw new ArchiveError(`line ${number} follows the seal`);
    const line = parseLine(bytes.toString('utf8', 0, bytes.byteLength - 1), number);
    isSealed = line[0] === 'seal';
    if (!isSealed) content.update(bytes);
    onLine(line);
  };
  try {
    await pipeline(
      createReadStream(path),
      tap.stream,
      createZstdDecompress(),
      async (source: AsyncIterable<Buffer>) => {
        let held: Buffer[] = [];
        let length = 0;
        for await (const part of source) {
          let from = 0;
          for (let end = part.indexOf(LINE_END); end >= 0; end = part.indexOf(LINE_END, from)) {
            const ended = part.subarray(from, end + 1);
            take(held.length === 0 ? ended : Buffer.concat([...held, ended]));
            held = [];
            length = 0;
            from = end + 1;
            const rest = pace();
            if (rest !== undefined) await rest;
          }
          if (from < part.byteLength) {
            held.push(Buffer.from(part.subarray(from)));
            length += part.byteLength - from;
            if (length > LINE_MAX) throw new ArchiveError(`line ${number + 1} is longer than any line of an archive`);
          }
        }
        if (held.length > 0) throw new ArchiveError('the last line is cut');
      },
    );
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new ArchiveError('there is no such file', { cause: error });
    throw new ArchiveError(`it cannot be read: ${message}`, { cause: error });
  }
  if (!isSealed) throw new ArchiveError('it has no seal, so it is not complete');
  return { ...tap.result(), content: content.digest('hex') };
}

/** The size and the digest of a file, without looking into it. null if it is not there. */
export async function digestOfFile(path: string): Promise<{ readonly bytes: number; readonly sha256: string } | null> {
  const digest = createHash('sha256');
  let bytes = 0;
  try {
    for await (const part of createReadStream(path) as AsyncIterable<Buffer>) {
      digest.update(part);
      bytes += part.byteLength;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  return { bytes, sha256: digest.digest('hex') };
}
