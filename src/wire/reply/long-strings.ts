import { randomBytes } from 'node:crypto';
import { malformed } from './provider-failure.ts';

/** A JSON text without its long strings. */
interface Outline {
  /** The text with a mark instead of each long string. */
  readonly json: Buffer;
  /** The beginning of its marks. The index of the string follows. */
  readonly mark: string;
  /** The bytes between the quotes, as they were written. */
  readonly strings: readonly Buffer[];
}

/** Shorter strings stay in the text. */
const LONG = 2048;
const TEXT_BYTES_MAX = 64 * 1024;
/** Bytes that are searched in one turn of the event loop: a quarter of a millisecond. */
const TURN_BYTES = 2 * 1024 * 1024;
/** More quotation marks than any reply or request has. Each one costs a search. */
const QUOTES_MAX = 200_000;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Reads the strings of an outline. */
type Strings = Pick<Outline, 'mark' | 'strings'>;

/**
 * A text that is not base64, and that nobody could write into the JSON text, because it is made after the text has
 * arrived. It is longer than any text of a provider's reply that clients get unchanged.
 */
const newMark = () => `\u0000long string ${randomBytes(32).toString('hex')} `;

/**
 * Takes the long strings out of a JSON text, so that images in it are neither parsed nor copied. It searches
 * natively, so 32 MiB take a few milliseconds. Throws UpstreamFailure for a string without an end.
 */
export function withoutLongStrings(bytes: Buffer, longerThan = LONG): Outline {
  const search = outlineInTurns(bytes, longerThan);
  for (;;) {
    const { done, value } = search.next();
    if (done) return value;
  }
}

/** Which long strings are taken out, and the marks that replace them. */
interface Choice {
  /** Whether a string is taken out of the text. Yields between pieces of work. */
  readonly isTaken: (bytes: Buffer) => Generator<void, boolean, undefined>;
  readonly markOf: (bytes: Buffer) => string;
}

/**
 * The same as withoutLongStrings, but yields between pieces of work. Without a choice it takes out all long strings.
 */
export function* outlineInTurns(
  bytes: Buffer,
  longerThan = LONG,
  choice?: Choice,
): Generator<void, Outline, undefined> {
  const strings: Buffer[] = [];
  const parts: Uint8Array[] = [];
  let from = 0;
  let at = 0;
  const quotes = { left: QUOTES_MAX };
  const mark = newMark();
  for (;;) {
    const start = bytes.indexOf(QUOTE, at);
    if (start === -1) break;
    const end = yield* stringEnd(bytes, start, quotes);
    at = end + 1;
    if (end - start <= longerThan) continue;
    const string = bytes.subarray(start + 1, end);
    if (choice !== undefined && !(yield* choice.isTaken(string))) continue;
    const instead = choice?.markOf(string) ?? mark + String(strings.length);
    parts.push(bytes.subarray(from, start), Buffer.from(JSON.stringify(instead)));
    strings.push(string);
    from = end + 1;
  }
  if (strings.length === 0) return { json: bytes, mark, strings };
  parts.push(bytes.subarray(from));
  return { json: Buffer.concat(parts), mark, strings };
}

/** The number of strings that were taken out of a parsed value. */
export function longStringsIn(value: unknown, outline: Pick<Outline, 'mark'>): number {
  if (typeof value === 'string') return value.startsWith(outline.mark) ? 1 : 0;
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  for (const [name, member] of Object.entries(value))
    count += longStringsIn(name, outline) + longStringsIn(member, outline);
  return count;
}

/**
 * The bytes of a parsed string, which may have been taken out. Escapes in a string that was taken out are not
 * decoded.
 */
export function bytesOfString(text: string, { mark, strings }: Strings): Buffer {
  const index = text.startsWith(mark) ? Number(text.slice(mark.length)) : NaN;
  return strings[index] ?? Buffer.from(text, 'utf8');
}

/** The text of a parsed string, which may have been taken out; null if it is too long or not a valid JSON string. */
export function textOfString(text: string, outline: Strings): string | null {
  if (!text.startsWith(outline.mark)) return text;
  const bytes = bytesOfString(text, outline);
  if (bytes.byteLength > TEXT_BYTES_MAX) return null;
  try {
    return JSON.parse(`"${bytes.toString('utf8')}"`) as string;
  } catch {
    return null;
  }
}

/** The place of the closing quote of the string that begins at `start`. */
function* stringEnd(bytes: Buffer, start: number, quotes: { left: number }): Generator<void, number, undefined> {
  let at = start + 1;
  for (;;) {
    const turn = bytes.subarray(at, at + TURN_BYTES);
    const found = turn.indexOf(QUOTE);
    if (found === -1) {
      if (turn.length < TURN_BYTES) throw malformed('its reply is not valid JSON: a string has no end');
      at += TURN_BYTES;
      yield;
      continue;
    }
    const quote = at + found;
    if (--quotes.left < 0) throw malformed('its reply has too many strings');
    let before = quote - 1;
    while (before > start && bytes[before] === BACKSLASH) before--;
    if ((quote - 1 - before) % 2 === 0) return quote;
    at = quote + 1;
  }
}
