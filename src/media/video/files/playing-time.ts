/** The playing time of an MP4 file, from the boxes that state it. Boxes that are cut off or broken are ignored. */
interface PlayingTime {
  /** Reads the content of a `moov` box. */
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

export function createPlayingTime(): PlayingTime {
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
