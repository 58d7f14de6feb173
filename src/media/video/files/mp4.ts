/** The file is not an MP4 file, or not a complete one. */
export class NotMp4 extends Error {
  override readonly name = 'NotMp4';
}

/** Checks an MP4 file while it passes: its boxes (ISO/IEC 14496-12), and its playing time. */
interface Mp4Scan {
  /** Throws NotMp4. */
  push(chunk: Uint8Array): void;
  /** The playing time in seconds; null if the file does not state it. Throws NotMp4 if the file is incomplete. */
  end(): number | null;
}

const HEAD_BYTES = 16;
/** The movie header is near the beginning of `moov`. */
const MOVIE_BYTES_MAX = 64 * 1024;
/** The boxes that contain the film. */
const FILM: ReadonlySet<string> = new Set(['moov', 'mdat', 'moof']);
const BRAND = /^[\x20-\x7e]{4}$/;

export function createMp4Scan(): Mp4Scan {
  /** Bytes of a box, kept until enough of them have come to read it. */
  let kept: Buffer = Buffer.alloc(0);
  /** Bytes of the box that are skipped; null: up to the end of the file. */
  let skip: number | null = 0;
  let boxes = 0;
  let duration: number | null = null;
  const seen = new Set<string>();

  /** Reads the box at the beginning of `kept`; false if more bytes are needed. */
  const readBox = (): boolean => {
    if (kept.length < 8) return false;
    const type = kept.toString('latin1', 4, 8);
    if (boxes === 0 && (type !== 'ftyp' || (kept.length >= 12 && !BRAND.test(kept.toString('latin1', 8, 12)))))
      throw new NotMp4('it does not begin like an MP4 file');
    if (boxes === 0 && kept.length < 12) return false;
    let size: number | null = kept.readUInt32BE(0);
    if (size === 1) {
      if (kept.length < HEAD_BYTES) return false;
      size = Number(kept.readBigUInt64BE(8));
    } else if (size === 0) size = null;
    if (size !== null && (size < 8 || !Number.isSafeInteger(size))) throw new NotMp4('a box of it has no length');
    if (type === 'moov' && size !== null) {
      if (kept.length < Math.min(size, MOVIE_BYTES_MAX)) return false;
      duration = durationIn(kept.subarray(8, Math.min(size, kept.length)));
    }
    if (FILM.has(type)) seen.add(type);
    boxes += 1;
    const over: Buffer = size === null ? kept.subarray(kept.length) : kept.subarray(Math.min(size, kept.length));
    skip = size === null ? null : Math.max(0, size - kept.length);
    kept = over;
    return true;
  };

  return {
    push(chunk) {
      if (skip === null) return;
      let rest = chunk;
      if (skip > 0) {
        const over = Math.min(skip, rest.byteLength);
        skip -= over;
        rest = rest.subarray(over);
      }
      if (rest.byteLength === 0) return;
      kept = kept.length === 0 ? Buffer.from(rest) : Buffer.concat([kept, rest]);
      while (kept.length > 0 && readBox());
    },
    end() {
      if (skip !== null && (skip > 0 || kept.length > 0)) throw new NotMp4('it ends in the middle of a box');
      if (!seen.has('moov') || !(seen.has('mdat') || seen.has('moof'))) throw new NotMp4('it has no film in it');
      return duration;
    },
  };
}

/** The duration in seconds, from the `mvhd` box; null if the box is missing or does not state it. */
function durationIn(movie: Buffer): number | null {
  for (let at = 0; at + 8 <= movie.length;) {
    const size = movie.readUInt32BE(at);
    if (movie.toString('latin1', at + 4, at + 8) === 'mvhd' && at + 40 <= movie.length) {
      const isLong = movie[at + 8] === 1;
      const scale = movie.readUInt32BE(at + (isLong ? 28 : 20));
      const length = isLong ? Number(movie.readBigUInt64BE(at + 32)) : movie.readUInt32BE(at + 24);
      const unknown = length === 0 || length === 0xff_ff_ff_ff;
      return scale === 0 || unknown ? null : length / scale;
    }
    if (size < 8) return null;
    at += size;
  }
  return null;
}
