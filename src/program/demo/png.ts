import { crc32, deflateSync, inflateSync } from 'node:zlib';
import { RequestError } from './request.ts';

/** A picture with four bytes per pixel: red, green, blue and alpha. */
export interface Rgba {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

const WITH_ALPHA = 6;
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** Writes a PNG file (ISO/IEC 15948) with full colours and alpha. */
export function toPng({ width, height, pixels }: Rgba): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, WITH_ALPHA], 8);
  // Each row begins with a byte for its filter. 0 is no filter.
  const row = width * 4;
  const rows = Buffer.alloc((row + 1) * height);
  for (let y = 0; y < height; y += 1) rows.set(pixels.subarray(y * row, (y + 1) * row), y * (row + 1) + 1);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.byteLength);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(typed));
  return Buffer.concat([length, typed, sum]);
}

/** Bytes per pixel for each colour type of the file: grey, RGB, palette, grey with alpha, RGB with alpha. */
const BYTES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
const EDGE_MAX = 4096;

/** Decodes a PNG file with 8 bits per sample, not interlaced. Throws RequestError for any other file. */
export function readPng(file: Buffer, param: string): Rgba {
  const wrong = () => new RequestError(`${param} must be a PNG file of 8 bits, not interlaced.`, param);
  if (file.length < 33 || file.toString('latin1', 1, 4) !== 'PNG') throw wrong();
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)];
  const type = file[25]!;
  const bytes = BYTES[type];
  if (file[24] !== 8 || bytes === undefined || file[28] !== 0 || width > EDGE_MAX || height > EDGE_MAX) throw wrong();
  let palette: Buffer = Buffer.alloc(0);
  let clear: Buffer = Buffer.alloc(0);
  const data: Buffer[] = [];
  for (let at = 8; at + 8 <= file.length;) {
    const length = file.readUInt32BE(at);
    const name = file.toString('latin1', at + 4, at + 8);
    const content = file.subarray(at + 8, at + 8 + length);
    if (name === 'PLTE') palette = content;
    if (name === 'tRNS') clear = content;
    if (name === 'IDAT') data.push(content);
    at += 12 + length;
  }
  const row = width * bytes;
  let rows: Buffer;
  try {
    rows = inflateSync(Buffer.concat(data), { maxOutputLength: (row + 1) * height });
  } catch {
    throw wrong();
  }
  if (rows.length < (row + 1) * height) throw wrong();
  const plain = unfilter(rows, row, height, bytes);
  const pixels = new Uint8Array(width * height * 4);
  for (let index = 0; index < width * height; index += 1)
    pixels.set(colourOf(plain.subarray(index * bytes, (index + 1) * bytes), type, palette, clear), index * 4);
  return { width, height, pixels };
}

function colourOf(bytes: Buffer, type: number, palette: Buffer, clear: Buffer): readonly number[] {
  const [first = 0, second = 255, third = 0, fourth = 255] = bytes;
  if (type === 3) return [...palette.subarray(first * 3, first * 3 + 3), clear[first] ?? 255];
  if (type === 0 || type === 4) return [first, first, first, second];
  return [first, second, third, fourth];
}

/**
 * Undoes the filter of each row. A filter subtracted a prediction from each byte: the byte on the left, the byte above,
 * their mean, or the Paeth predictor.
 */
function unfilter(rows: Buffer, row: number, height: number, bytes: number): Buffer {
  const plain = Buffer.alloc(row * height);
  for (let y = 0; y < height; y += 1) {
    const filter = rows[y * (row + 1)];
    for (let x = 0; x < row; x += 1) {
      const at = y * row + x;
      const before = x < bytes ? 0 : plain[at - bytes]!;
      const above = y === 0 ? 0 : plain[at - row]!;
      const corner = x < bytes || y === 0 ? 0 : plain[at - row - bytes]!;
      const predicted =
        [0, before, above, (before + above) >> 1, filter === 4 ? paeth(before, above, corner) : 0][filter ?? 0] ?? 0;
      plain[at] = rows[y * (row + 1) + 1 + x]! + predicted;
    }
  }
  return plain;
}

function paeth(before: number, above: number, corner: number): number {
  const guess = before + above - corner;
  const [ofLeft, ofAbove, ofCorner] = [before, above, corner].map((one) => Math.abs(guess - one)) as [
    number,
    number,
    number,
  ];
  if (ofLeft <= ofAbove && ofLeft <= ofCorner) return before;
  return ofAbove <= ofCorner ? above : corner;
}
