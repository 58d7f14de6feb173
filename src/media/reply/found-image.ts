import { type ImageHead, readImageHead } from './image-head.ts';

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

/** The head of an image in base64; null if it is not a PNG, JPEG or WebP file. */
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

/** The number of padding characters at the end. */
function paddingOf(base64: Buffer): number {
  const { byteLength } = base64;
  if (base64[byteLength - 1] !== PADDING) return 0;
  return base64[byteLength - 2] === PADDING ? 2 : 1;
}

/** Length of the file in bytes. */
export function fileBytes({ base64 }: Pick<FoundImage, 'base64'>): number {
  return (base64.byteLength / 4) * 3 - paddingOf(base64);
}
