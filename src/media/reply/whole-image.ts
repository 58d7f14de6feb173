import type { ImageFormat } from '../request/image-fields.ts';
import { fileBytes } from './found-image.ts';

/** Chunks of a PNG that are followed in one turn of the event loop, and altogether. No image has more. */
const TURN_CHUNKS = 2_048;
const CHUNKS_MAX = 64 * 1024;
/** Some cameras and programs append data to a JPEG. */
const JPEG_TAIL_BYTES = 64 * 1024;
const END_OF_JPEG = Buffer.from([0xff, 0xd9]);
const PNG_SIGNATURE_BYTES = 8;
const RIFF_HEAD_BYTES = 8;

/**
 * Whether an image goes on to its end: the last chunk of a PNG, the end marker of a JPEG, the stated length of a WebP.
 * Bytes behind the end do not matter. The image is in checked base64 and is not decoded. Yields between pieces of work.
 */
export function* isWholeImage(base64: Buffer, format: ImageFormat): Generator<void, boolean, undefined> {
  const total = fileBytes({ base64 });
  if (format === 'webp') return bytesAt(base64, 4, 8).readUInt32LE(0) + RIFF_HEAD_BYTES <= total;
  if (format === 'jpeg') return bytesAt(base64, Math.max(0, total - JPEG_TAIL_BYTES), total).includes(END_OF_JPEG);
  let at = PNG_SIGNATURE_BYTES;
  for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
    // Each chunk is its length, its name, its content and a checksum.
    if (at + 12 > total) return false;
    const head = bytesAt(base64, at, at + 8);
    at += 12 + head.readUInt32BE(0);
    if (head.toString('latin1', 4, 8) === 'IEND') return at <= total;
    if (chunk % TURN_CHUNKS === TURN_CHUNKS - 1) yield;
  }
  return true;
}

/** Bytes of a file in base64. Every four characters are three bytes. */
function bytesAt(base64: Buffer, start: number, end: number): Buffer {
  const from = Math.floor(start / 3);
  const bytes = Buffer.from(base64.toString('latin1', from * 4, Math.ceil(end / 3) * 4), 'base64');
  return bytes.subarray(start - from * 3, end - from * 3);
}
