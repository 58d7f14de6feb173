import { createByteBuffer } from '#wire';
import { createPlayingTime } from './playing-time.ts';

/** The file is not an MP4 file, or not a complete one. */
export class NotMp4 extends Error {
  override readonly name = 'NotMp4';
}

/** Facts of a complete file, as it states them. */
export interface Mp4Facts {
  /** The playing time in seconds; null if the file does not state it. */
  readonly seconds: number | null;
  /** Bytes of pictures and sound (the content of `mdat` boxes). */
  readonly filmBytes: number;
}

/** Checks an MP4 file while it passes: its boxes (ISO/IEC 14496-12), and its playing time. */
interface Mp4Scan {
  /** Throws NotMp4. */
  push(chunk: Uint8Array): void;
  /** Throws NotMp4 if the file is incomplete. */
  end(): Mp4Facts;
}

const HEAD_BYTES = 8;
const LONG_HEAD_BYTES = 16;
/** The first box, `ftyp`, has at least a brand and its version. */
const FIRST_BYTES = 16;
/**
 * How much of a box is read. The headers of the movie and of its tracks are near the beginning of `moov`. A fragment
 * lists its samples in `moof`, with at most 16 bytes each.
 */
const READ_BYTES_MAX: Readonly<Record<string, number>> = { moov: 64 * 1024, moof: 256 * 1024 };
/** The boxes that contain the film. */
const FILM: ReadonlySet<string> = new Set(['moov', 'mdat', 'moof']);
const BRAND = /^[\x20-\x7e]{4}$/;

export function createMp4Scan(): Mp4Scan {
  /** The beginning of a box. */
  const kept = createByteBuffer(READ_BYTES_MAX['moof']!, () => new NotMp4('a box of it is too large'));
  /** Bytes of the box that have to come before it can be read further. */
  let need = HEAD_BYTES;
  /** Bytes of the box that are skipped; null: up to the end of the file. */
  let skip: number | null = 0;
  let boxes = 0;
  let inFilm = false;
  let filmBytes = 0;
  const playing = createPlayingTime();
  const seen = new Set<string>();

  /** Reads the box at the beginning of `kept`, or raises `need`. */
  const readBox = (): void => {
    const { bytes, length } = kept;
    const type = bytes.toString('latin1', 4, 8);
    if (boxes === 0) {
      if (type !== 'ftyp') throw new NotMp4('it does not begin like an MP4 file');
      if (length < FIRST_BYTES) {
        need = FIRST_BYTES;
        return;
      }
      if (!BRAND.test(bytes.toString('latin1', 8, 12))) throw new NotMp4('it does not begin like an MP4 file');
    }
    let head = boxes === 0 ? FIRST_BYTES : HEAD_BYTES;
    let size: number | null = bytes.readUInt32BE(0);
    if (size === 1) {
      head = LONG_HEAD_BYTES;
      if (length < head) {
        need = head;
        return;
      }
      size = Number(bytes.readBigUInt64BE(8));
    } else if (size === 0) size = null;
    if (size !== null && (size < head || !Number.isSafeInteger(size))) throw new NotMp4('a box of it has no length');
    const readable = Math.min(size ?? 0, READ_BYTES_MAX[type] ?? 0);
    if (length < readable) {
      need = readable;
      return;
    }
    if (type === 'moov') playing.movie(bytes.subarray(head, readable));
    else if (type === 'moof') playing.fragment(bytes.subarray(head, readable));
    if (FILM.has(type)) seen.add(type);
    boxes += 1;
    inFilm = type === 'mdat';
    skip = size === null ? null : size - length;
    kept.clear();
    need = HEAD_BYTES;
  };

  return {
    push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      for (let at = 0; at < bytes.length;) {
        if (skip === null || skip > 0) {
          const over = Math.min(skip ?? Infinity, bytes.length - at);
          if (inFilm) filmBytes += over;
          if (skip !== null) skip -= over;
          at += over;
          continue;
        }
        const end = Math.min(bytes.length, at + need - kept.length);
        kept.push(bytes, at, end);
        at = end;
        if (kept.length === need) readBox();
      }
    },
    end() {
      if (skip !== null && (skip > 0 || kept.length > 0)) throw new NotMp4('it ends in the middle of a box');
      if (!seen.has('moov') || !(seen.has('mdat') || seen.has('moof'))) throw new NotMp4('it has no film in it');
      return { seconds: playing.seconds(), filmBytes };
    },
  };
}
