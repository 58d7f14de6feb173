import { pictureParameters, sequenceParameters } from './h264.ts';

/** A film whose pictures are H.264 units of h264.ts. */
export interface Film {
  readonly width: number;
  readonly height: number;
  /** Pictures per second. */
  readonly rate: number;
  readonly pictures: readonly Buffer[];
}

/** Writes a film as an MP4 file (ISO/IEC 14496-12 and -15). Players can start before they have the whole file. */
export function toMp4(film: Film): Buffer {
  const samples = film.pictures.map((unit) => Buffer.concat([u32(unit.length), unit]));
  const head = box('ftyp', Buffer.from('isom'), u32(512), Buffer.from('isomiso2avc1mp41'));
  // The `moov` box comes first and contains the position of the pictures. The box is built twice because this position
  // depends on the length of the box. The length doesn't depend on the position.
  const before = head.length + movie(film, samples, 0).length + 8;
  return Buffer.concat([head, movie(film, samples, before), box('mdat', ...samples)]);
}

function movie({ width, height, rate, pictures }: Film, samples: readonly Buffer[], firstAt: number): Buffer {
  const length = pictures.length;
  const matrix = Buffer.concat([0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].map(u32));
  const times = [u32(0), u32(0), u32(rate), u32(length)];
  const header = full('mvhd', ...times, u32(0x10000), u16(0x100), zeros(10), matrix, zeros(24), u32(2));
  const track = flagged(
    'tkhd',
    3,
    u32(0),
    u32(0),
    u32(1),
    u32(0),
    u32(length),
    zeros(16),
    matrix,
    u32(width << 16),
    u32(height << 16),
  );
  const media = box(
    'mdia',
    full('mdhd', ...times, u16(0x55c4), u16(0)),
    full('hdlr', u32(0), Buffer.from('vide'), zeros(12), Buffer.from('tollgate demo\0')),
    box(
      'minf',
      flagged('vmhd', 1, zeros(8)),
      box('dinf', full('dref', u32(1), flagged('url ', 1))),
      box(
        'stbl',
        full('stsd', u32(1), sampleEntry(width, height)),
        full('stts', u32(1), u32(length), u32(1)),
        full('stsc', u32(1), u32(1), u32(length), u32(1)),
        full('stsz', u32(0), u32(length), ...samples.map(({ length: bytes }) => u32(bytes))),
        full('stco', u32(1), u32(firstAt)),
      ),
    ),
  );
  return box('moov', header, box('trak', track, media));
}

function sampleEntry(width: number, height: number): Buffer {
  const sequence = sequenceParameters(width, height);
  const picture = pictureParameters();
  const decoder = box(
    'avcC',
    Buffer.from([1, sequence[1]!, sequence[2]!, sequence[3]!, 0xff, 0xe1]),
    u16(sequence.length),
    sequence,
    Buffer.from([1]),
    u16(picture.length),
    picture,
  );
  return box(
    'avc1',
    zeros(6),
    u16(1),
    zeros(16),
    u16(width),
    u16(height),
    u32(0x480000),
    u32(0x480000),
    u32(0),
    u16(1),
    zeros(32),
    u16(24),
    u16(0xffff),
    decoder,
  );
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const length = 8 + content.reduce((sum, { length: bytes }) => sum + bytes, 0);
  return Buffer.concat([u32(length), Buffer.from(type, 'latin1'), ...content]);
}

const full = (type: string, ...content: readonly Buffer[]) => flagged(type, 0, ...content);
const flagged = (type: string, flags: number, ...content: readonly Buffer[]) => box(type, u32(flags), ...content);
const zeros = (length: number) => Buffer.alloc(length);

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}
