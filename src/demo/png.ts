import { crc32, deflateSync } from 'node:zlib';

/** A picture of at most 256 colours. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue, 0 to 255 each. */
  readonly palette: readonly (readonly [number, number, number])[];
  /** The colour of each pixel, as an index into the palette, row by row. */
  readonly pixels: Uint8Array;
}

/** A picture with four bytes per pixel: red, green, blue and alpha. */
export interface Rgba {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

const PALETTE = 3;
const WITH_ALPHA = 6;

/** A PNG file (ISO/IEC 15948) with a palette. */
export const toPng = ({ width, height, palette, pixels }: Picture): Buffer =>
  file({ width, height, pixels }, PALETTE, 1, [chunk('PLTE', Buffer.from(palette.flat()))]);

/** A PNG file with full colours and alpha. */
export const rgbaToPng = (picture: Rgba): Buffer => file(picture, WITH_ALPHA, 4, []);

function file({ width, height, pixels }: Rgba, type: number, bytes: number, more: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, type], 8);
  // Each row begins with a byte for its filter. 0 is no filter.
  const row = width * bytes;
  const rows = Buffer.alloc((row + 1) * height);
  for (let y = 0; y < height; y += 1) rows.set(pixels.subarray(y * row, (y + 1) * row), y * (row + 1) + 1);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    ...more,
    chunk('IDAT', deflateSync(rows, { level: 4 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.byteLength);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
