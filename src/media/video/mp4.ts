import { createByteBuffer } from '#wire';

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
const FILM: ReadonlySet<string> = new Set(['moov', 'mdat', 'moof']);
const BRAND = /^[\x20-\x7e]{4}$/;

export function createMp4Scan(): Mp4Scan {
  const buffer = createByteBuffer(READ_BYTES_MAX['moof']!, () => new NotMp4('a box of it is too large'));
  /** Bytes of the box that have to come before it can be read further. */
  let need = HEAD_BYTES;
  /** Bytes of the box that are skipped; null: up to the end of the file. */
  let skip: number | null = 0;
  let boxes = 0;
  let inFilm = false;
  let filmBytes = 0;
  const playing = createPlayingTime();
  const seen = new Set<string>();

  /** Reads the box at the beginning of `buffer`, or raises `need`. */
  const readBox = (): void => {
    const { bytes, length } = buffer;
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
    buffer.clear();
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
        const end = Math.min(bytes.length, at + need - buffer.length);
        buffer.push(bytes, at, end);
        at = end;
        if (buffer.length === need) readBox();
      }
    },
    end() {
      if (skip !== null && (skip > 0 || buffer.length > 0)) throw new NotMp4('it ends in the middle of a box');
      if (!seen.has('moov') || !(seen.has('mdat') || seen.has('moof'))) throw new NotMp4('it has no film in it');
      return { seconds: playing.seconds(), filmBytes };
    },
  };
}

/** The playing time of an MP4 file, from the boxes that state it. Boxes that are cut off or broken are ignored. */
interface PlayingTime {
  movie(content: Buffer): void;
  /** Reads the content of a `moof` box: a fragmented file states the lengths of its samples there. */
  fragment(content: Buffer): void;
  /** In seconds; null if no box states it. */
  seconds(): number | null;
}

interface Track {
  /** Units of a second; 0 if it is not known. */
  scale: number;
  /** Units of a sample whose fragment does not say how long it is. */
  sampleUnits: number;
  /** Units of all fragments. */
  units: number;
  /** The start of the first fragment; null if no fragment states it. */
  from: number | null;
}

const UNKNOWN = 0xff_ff_ff_ff;
/** More tracks than any video has. Further ones are not kept. */
const TRACKS_MAX = 32;
/** A first fragment this close to the end of the movie box continues it. */
const CONTINUES_S = 0.1;

function createPlayingTime(): PlayingTime {
  const tracks = new Map<number, Track>();
  /** As `moov` states it; 0 if it does not. */
  let stated = 0;

  const trackOf = (id: number): Track => {
    const known = tracks.get(id);
    if (known !== undefined) return known;
    const track = { scale: 0, sampleUnits: 0, units: 0, from: null };
    if (tracks.size < TRACKS_MAX) tracks.set(id, track);
    return track;
  };

  const readTrack = (content: Buffer): void => {
    let id = 0;
    for (const [type, box] of boxesIn(content)) {
      if (type === 'tkhd') id = numberAt(box, box[0] === 1 ? 20 : 12);
      if (type !== 'mdia') continue;
      for (const [inner, header] of boxesIn(box)) {
        if (inner !== 'mdhd') continue;
        trackOf(id).scale = scaleOf(header);
        stated = Math.max(stated, lengthOf(header));
      }
    }
  };

  const readDefaults = (content: Buffer, scale: number): void => {
    for (const [type, box] of boxesIn(content)) {
      if (type === 'trex') trackOf(numberAt(box, 4)).sampleUnits = numberAt(box, 12);
      if (type === 'mehd' && scale > 0) stated = Math.max(stated, wholeAt(box, 4, box[0] === 1) / scale);
    }
  };

  const readFragment = (content: Buffer): void => {
    let track: Track | null = null;
    let sampleUnits = 0;
    for (const [type, box] of boxesIn(content)) {
      if (type === 'tfhd') {
        track = trackOf(numberAt(box, 4));
        sampleUnits = defaultOf(box) ?? track.sampleUnits;
      } else if (type === 'tfdt' && track !== null) track.from ??= wholeAt(box, 4, box[0] === 1);
      else if (type === 'trun' && track !== null) track.units += unitsOf(box, sampleUnits);
    }
  };

  return {
    movie(content) {
      let scale = 0;
      for (const [type, box] of boxesIn(content)) {
        if (type === 'mvhd') {
          scale = scaleOf(box);
          stated = Math.max(stated, lengthOf(box));
        } else if (type === 'trak') readTrack(box);
        else if (type === 'mvex') readDefaults(box, scale);
      }
    },
    fragment(content) {
      for (const [type, box] of boxesIn(content)) if (type === 'traf') readFragment(box);
    },
    seconds() {
      let longest = stated;
      for (const { scale, units, from } of tracks.values()) {
        if (scale === 0 || units === 0) continue;
        // Some writers have the first part in `moov`, whose length is then that of the first part.
        const before = from !== null && Math.abs(from / scale - stated) <= CONTINUES_S ? stated : 0;
        longest = Math.max(longest, before + units / scale);
      }
      return longest > 0 ? longest : null;
    },
  };
}

/** The boxes in the content of a box: the type and the content of each. */
function* boxesIn(content: Buffer): Generator<readonly [type: string, content: Buffer], void, undefined> {
  for (let at = 0; at + 8 <= content.length;) {
    const size = content.readUInt32BE(at);
    if (size < 8) return;
    yield [content.toString('latin1', at + 4, at + 8), content.subarray(at + 8, at + size)];
    at += size;
  }
}

/** 0 behind the end. */
const numberAt = (box: Buffer, at: number): number => (at + 4 <= box.length ? box.readUInt32BE(at) : 0);

/** A whole number of 32 or 64 bits; 0 behind the end, and for "unknown". */
function wholeAt(box: Buffer, at: number, isLong: boolean): number {
  if (!isLong) return numberAt(box, at) === UNKNOWN ? 0 : numberAt(box, at);
  const whole = at + 8 <= box.length ? Number(box.readBigUInt64BE(at)) : 0;
  return Number.isSafeInteger(whole) ? whole : 0;
}

/** `mvhd` and `mdhd` have the same beginning: version, two dates, units of a second, length. */
const scaleOf = (header: Buffer): number => numberAt(header, header[0] === 1 ? 20 : 12);

function lengthOf(header: Buffer): number {
  const isLong = header[0] === 1;
  const scale = scaleOf(header);
  return scale === 0 ? 0 : wholeAt(header, isLong ? 24 : 16, isLong) / scale;
}

const flagsOf = (box: Buffer): number => numberAt(box, 0) & 0xff_ff_ff;

/** The length of a sample that `tfhd` states for its fragment; null if it does not. */
function defaultOf(header: Buffer): number | null {
  const flags = flagsOf(header);
  if ((flags & 0x8) === 0) return null;
  return numberAt(header, 8 + ((flags & 0x1) === 0 ? 0 : 8) + ((flags & 0x2) === 0 ? 0 : 4));
}

/** The length of all samples of a `trun`. Samples whose entries are cut off do not count. */
function unitsOf(run: Buffer, sampleUnits: number): number {
  const flags = flagsOf(run);
  const samples = numberAt(run, 4);
  if ((flags & 0x100) === 0) return samples * sampleUnits;
  const entry = 4 * [0x100, 0x200, 0x400, 0x800].filter((flag) => (flags & flag) !== 0).length;
  const first = 8 + ((flags & 0x1) === 0 ? 0 : 4) + ((flags & 0x4) === 0 ? 0 : 4);
  let units = 0;
  for (let sample = 0; sample < samples && first + sample * entry + 4 <= run.length; sample += 1)
    units += numberAt(run, first + sample * entry);
  return units;
}
