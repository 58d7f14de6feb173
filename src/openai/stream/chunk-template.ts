import { isUtf8 } from 'node:buffer';
import type { ByteOutput } from './byte-output.ts';

/**
 * The form of a chunk whose text alone varies: nearly all chunks of a stream are byte for byte the same but for one
 * string, so that they can be checked by comparison and rewritten by splicing, without being parsed.
 */
export interface ChunkTemplate {
  /** The provider's bytes before and after the text, and ours in their place. */
  readonly givenHead: Buffer;
  readonly givenTail: Buffer;
  readonly head: Buffer;
  readonly tail: Buffer;
}

const PLACEHOLDER = 'tollgate:the-text-goes-here';
/** A form longer than this is not learned: learning parses it up to nine times, in one turn of the event loop. */
const FORM_CHARS_MAX = 4096;
const ESCAPES = new Uint8Array(256);
for (const escape of '"\\bfnrt') ESCAPES[escape.charCodeAt(0)] = 1;

/** Places that a key may be tried at before the form counts as not learnable. */
const PLACES_MAX = 8;

/**
 * Learns the template of a chunk. `text` is the provider's, `place` sets the varying string in the parsed chunk,
 * and `rendered` is our rewriting of the chunk with PLACEHOLDER as that string. null when the string cannot be
 * located beyond doubt.
 */
export function learnTemplate(
  text: string,
  key: string,
  place: (chunk: Record<string, unknown>, value: string) => void,
  render: (placeholder: string) => string,
): ChunkTemplate | null {
  if (text.length > FORM_CHARS_MAX) return null;
  const expected = JSON.parse(text) as Record<string, unknown>;
  place(expected, PLACEHOLDER);
  const wanted = JSON.stringify(expected);
  const ours = render(PLACEHOLDER).split(PLACEHOLDER);
  if (ours.length !== 2) return null;
  const quoted = new RegExp(`"${key}"\\s*:\\s*"`, 'g');
  for (let tries = 0; tries < PLACES_MAX; tries++) {
    const found = quoted.exec(text);
    if (!found) return null;
    const start = quoted.lastIndex;
    const end = endOfString(text, start);
    const head = text.slice(0, start);
    const tail = text.slice(end);
    // Only the right place gives the same chunk with the text replaced.
    if (sameJson(head + PLACEHOLDER + tail, wanted)) {
      return {
        givenHead: Buffer.from(head),
        givenTail: Buffer.from(tail),
        head: Buffer.from(`data: ${ours[0]!}`),
        tail: Buffer.from(`${ours[1]!}\n\n`),
      };
    }
  }
  return null;
}

/**
 * Writes the event in `bytes` to `output` when it has this form; returns the bytes of its text.
 * −1, and nothing written, when it has another form, or a text that serialising would write in another way.
 */
export function applyTemplate(
  template: ChunkTemplate,
  bytes: Buffer,
  start: number,
  end: number,
  output: ByteOutput,
): number {
  const { givenHead, givenTail, head, tail } = template;
  const textStart = start + givenHead.length;
  const textEnd = end - givenTail.length;
  if (textEnd < textStart) return -1;
  if (bytes.compare(givenHead, 0, givenHead.length, start, textStart) !== 0) return -1;
  if (bytes.compare(givenTail, 0, givenTail.length, textEnd, end) !== 0) return -1;
  const target = output.reserve(head.length + textEnd - textStart + tail.length);
  const at = output.length + head.length;
  const count = copyText(bytes, textStart, textEnd, target, at);
  if (count === -1) return -1;
  target.set(head, output.length);
  target.set(tail, at + textEnd - textStart);
  output.length = at + textEnd - textStart + tail.length;
  return count;
}

/**
 * Copies the inside of a JSON string that is written exactly as JSON.stringify writes it; −1 for any other. Returns
 * its bytes, an escape counting one.
 */
function copyText(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let escapes = 0;
  let high = 0;
  for (let i = start, to = at; i < end; i++, to++) {
    const byte = source[i]!;
    if (byte < 0x20 || byte === 0x22) return -1;
    if (byte === 0x5c) {
      if (i + 1 === end || ESCAPES[source[i + 1]!] === 0) return -1;
      target[to++] = byte;
      target[to] = source[++i]!;
      escapes++;
    } else {
      high |= byte;
      target[to] = byte;
    }
  }
  if (high >= 0x80 && !isUtf8(source.subarray(start, end))) return -1;
  return end - start - escapes;
}

function endOfString(text: string, from: number): number {
  let i = from;
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}

function sameJson(text: string, wanted: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === wanted;
  } catch {
    return false;
  }
}
