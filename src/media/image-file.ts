export const IMAGE_FORMATS = ['png', 'jpeg', 'webp'] as const;

export type ImageFormat = (typeof IMAGE_FORMATS)[number];

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

/** An image of a provider's reply: its base64, which is checked, and the facts in the head of the file. */
export interface FoundImage extends ImageHead {
  readonly base64: Buffer;
  readonly seed: number | null;
  readonly revisedPrompt: string | null;
}

/** Reads a seed that a provider tells; null if it is not a whole number. */
export const seedOf = (seed: unknown): number | null => (Number.isSafeInteger(seed) ? (seed as number) : null);

/**
 * Characters of base64 that are checked in one turn of the event loop. This takes half a millisecond, and longer
 * before V8 has compiled the loop.
 */
const TURN_CHARS = 512 * 1024;
/**
 * Characters of base64 from which the head is read. The second number is large, because a JPEG may have much data
 * before its size.
 */
const HEAD_CHARS = [4 * 1024, 1024 * 1024];
const PADDING = 0x3d;
/** 1 for every byte that is not a character of base64. */
const OTHER = new Uint8Array(256).fill(1);
for (const char of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/') OTHER[char.charCodeAt(0)] = 0;
const COMMA = 0x2c;
const DATA_URL_HEAD_MAX = 128;

export const isDataUrl = (value: Buffer): boolean => value.toString('latin1', 0, 5).toLowerCase() === 'data:';

/** The base64 of a value that may be a data URL. */
export function base64Of(value: Buffer): Buffer {
  if (!isDataUrl(value)) return value;
  const comma = value.subarray(0, DATA_URL_HEAD_MAX).indexOf(COMMA);
  return comma === -1 ? value : value.subarray(comma + 1);
}

/** Whether a data URL says that it is in base64. */
export const isWholeDataUrl = (value: Buffer): boolean =>
  /^data:[\w.+/;=-]*;base64,/i.test(value.toString('latin1', 0, DATA_URL_HEAD_MAX));

export function headOf(base64: Buffer): ImageHead | null {
  for (const chars of HEAD_CHARS) {
    const head = readImageHead(Buffer.from(base64.toString('latin1', 0, chars), 'base64'));
    if (head !== null || base64.byteLength <= chars) return head;
  }
  return null;
}

/** Returns whether all of it is base64 as in RFC 4648, with nothing else. Yields between pieces of work. */
export function* checkBase64(base64: Buffer): Generator<void, boolean, undefined> {
  const { byteLength } = base64;
  if (byteLength === 0 || byteLength % 4 !== 0) return false;
  const end = byteLength - paddingOf(base64);
  for (let at = 0; at < end; at += TURN_CHARS) {
    if (at > 0) yield;
    if (hasOther(base64, at, Math.min(end, at + TURN_CHARS))) return false;
  }
  return true;
}

/** Checks bytes, because making a text of each piece would produce garbage of the size of the image. */
function hasOther(bytes: Buffer, start: number, end: number): boolean {
  let other = 0;
  for (let i = start; i < end; i++) other |= OTHER[bytes[i]!]!;
  return other !== 0;
}

function paddingOf(base64: Buffer): number {
  const { byteLength } = base64;
  if (base64[byteLength - 1] !== PADDING) return 0;
  return base64[byteLength - 2] === PADDING ? 2 : 1;
}

/** Length of the file in bytes. */
export function fileBytes({ base64 }: Pick<FoundImage, 'base64'>): number {
  return (base64.byteLength / 4) * 3 - paddingOf(base64);
}

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

function bytesAt(base64: Buffer, start: number, end: number): Buffer {
  const from = Math.floor(start / 3);
  const bytes = Buffer.from(base64.toString('latin1', from * 4, Math.ceil(end / 3) * 4), 'base64');
  return bytes.subarray(start - from * 3, end - from * 3);
}
