import type { ImageFormat } from '../request/image-fields.ts';

/** Facts of an image, read from the beginning of its file. The image is not decoded. */
export interface ImageHead {
  readonly format: ImageFormat;
  readonly width: number;
  readonly height: number;
}

/** The head of a PNG, JPEG or WebP file; null for anything else, and if the beginning is too short. */
export function readImageHead(bytes: Buffer): ImageHead | null {
  const head = pngHead(bytes) ?? webpHead(bytes) ?? jpegHead(bytes);
  return head !== null && head.width > 0 && head.height > 0 ? head : null;
}

const PNG = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

function pngHead(bytes: Buffer): ImageHead | null {
  if (bytes.length < 24 || !bytes.subarray(0, 8).equals(PNG) || bytes.toString('latin1', 12, 16) !== 'IHDR')
    return null;
  return { format: 'png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** RFC 9649: lossy, lossless and extended files begin differently. */
function webpHead(bytes: Buffer): ImageHead | null {
  if (bytes.length < 30 || bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WEBP')
    return null;
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      if (bytes.readUIntBE(23, 3) !== 0x9d012a) return null;
      return { format: 'webp', width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      if (bytes[20] !== 0x2f) return null;
      const bits = bytes.readUInt32LE(21);
      return { format: 'webp', width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { format: 'webp', width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}

/** The size is in the first start of a frame (SOF), after segments of any length. */
function jpegHead(bytes: Buffer): ImageHead | null {
  if (bytes.length < 4 || bytes.readUIntBE(0, 3) !== 0xffd8ff) return null;
  let at = 2;
  while (at + 9 <= bytes.length) {
    if (bytes[at] !== 0xff) return null;
    const marker = bytes[at + 1]!;
    // Fill bytes, and markers without a length.
    if (marker === 0xff) at += 1;
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else if (isFrame(marker))
      return { format: 'jpeg', width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    else if (marker === 0xd9 || marker === 0xda) return null;
    else at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
}

/** SOF0 to SOF15, without DHT, JPG and DAC, which have numbers in the same range. */
const isFrame = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
