/** A whole MP4 file by its boxes: it says how long it plays, and its film is `bytes` long. */
export function tinyMp4(seconds: number | null, bytes = 1_000, fill = 7): Buffer {
  const film = Buffer.alloc(bytes, fill);
  return Buffer.concat([
    box('ftyp', Buffer.from('isom\0\0\0\0isomiso2')),
    box('free', Buffer.alloc(8)),
    box('mdat', film),
    box('moov', box('mvhd', movieHeader(seconds)), box('trak', Buffer.alloc(16))),
  ]);
}

export function box(type: string, ...content: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.reduce((sum, { length }) => sum + length, 0));
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, ...content]);
}

function movieHeader(seconds: number | null): Buffer {
  const fields = Buffer.alloc(100);
  fields.writeUInt32BE(1_000, 12);
  fields.writeUInt32BE(seconds === null ? 0 : Math.round(seconds * 1_000), 16);
  return fields;
}

interface Fragmented {
  readonly fragments: number;
  /** Of each fragment, at 24 a second. */
  readonly samples: number;
  /** Each sample has its own length. */
  readonly perSample?: boolean;
  /** The header of a fragment has the length of its samples. Else the movie box has it. */
  readonly inHeader?: boolean;
  /** Seconds of the film that are in the movie box. The fragments are the rest. */
  readonly before?: number;
}

/** A fragmented MP4 file, whose movie box does not say how long it plays. */
export function fragmentedMp4({ fragments, samples, perSample, inHeader, before = 0 }: Fragmented): Buffer {
  const scale = 24_000;
  const track = box(
    'trak',
    box('tkhd', numbers(0, 0, 0, 1)),
    box('mdia', box('mdhd', numbers(0, 0, 0, scale, before * scale, 0))),
  );
  const defaults = box('mvex', box('trex', numbers(0, 1, 1, perSample || inHeader ? 0 : 1_000, 0, 0)));
  const count = before > 0 ? fragments - before : fragments;
  return Buffer.concat([
    box('ftyp', Buffer.from('iso5\0\0\0\0iso5mp41')),
    box('moov', box('mvhd', movieHeader(before === 0 ? null : before)), track, defaults),
    ...Array.from({ length: count }, (_, index) => {
      const header = inHeader ? numbers(0x8, 1, 1_000) : numbers(0, 1);
      const start = numbers(0, (before + (index * samples) / 24) * scale);
      const run = perSample
        ? numbers(0x301, samples, 0, ...Array.from({ length: samples }, () => [1_000, 50]).flat())
        : numbers(0x200, samples, ...Array.from({ length: samples }, () => 50));
      const fragment = box('traf', box('tfhd', header), box('tfdt', start), box('trun', run));
      return Buffer.concat([
        box('moof', box('mfhd', numbers(0, index + 1)), fragment),
        box('mdat', Buffer.alloc(samples * 50)),
      ]);
    }),
  ]);
}

function numbers(...all: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * all.length);
  for (const [index, number] of all.entries()) bytes.writeUInt32BE(number, 4 * index);
  return bytes;
}
