import { crc32, deflateSync } from 'node:zlib';

/** A picture of at most 256 colours. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue, 0 to 255 each. */
  readonly palette: readonly (readonly [number, number, number])[];
  /** The colour of each pixel by its place in the palette, row by row. */
  readonly pixels: Uint8Array;
}

/** A PNG file (ISO/IEC 15948) with a palette. */
export function toPng({ width, height, palette, pixels }: Picture): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits for each pixel, which is a place in the palette.
  header.set([8, 3], 8);
  // Each row begins with its filter: 0 leaves the row as it is.
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('PLTE', Buffer.from(palette.flat())),
    chunk('IDAT', deflateSync(rows, { level: 4 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.byteLength);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
