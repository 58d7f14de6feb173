import { randomBytes, randomUUID } from 'node:crypto';
import { malformed, tooLarge } from './upstream-failure.ts';
import { ownTurn } from '../long-work.ts';

/*
 * Large strings of JSON, such as images in base64. They are taken out of a reply before it is parsed, and marks replace
 * them in an answer until it is written.
 */

/** A JSON text without its long strings. */
export interface Outline {
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
const SEARCHED_BYTES = 2 * 1024 * 1024;
/** More quotation marks than any reply or request has. Each one costs a search. */
const QUOTES_MAX = 200_000;
/** Quotation marks that are searched in one turn of the event loop: a few milliseconds. */
const QUOTES_AT_ONCE = 20_000;
/** The same as QUOTES_MAX for what is searched in one turn. */
const QUOTES_OF_EVENT_MAX = 50_000;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

type Strings = Pick<Outline, 'mark' | 'strings'>;

/**
 * A text that is not base64, and that nobody could write into the JSON text, because it is made after the text has
 * arrived. It is longer than any text of a provider's reply that clients get unchanged.
 */
const newMark = () => `\u0000long string ${randomBytes(32).toString('hex')} `;

/**
 * Takes the long strings out of a JSON text, so that images in it are neither parsed nor copied. It searches
 * natively, so 32 MiB with a few strings take a few milliseconds. Throws UpstreamFailure for a string without an end.
 */
export function withoutLongStrings(bytes: Buffer, longerThan = LONG): Outline {
  const search = outlineInTurns(bytes, longerThan, undefined, QUOTES_OF_EVENT_MAX);
  for (;;) {
    const { done, value } = search.next();
    if (done) return value;
  }
}

/** Which long strings are taken out, and the marks that replace them. */
interface StringChoice {
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
  choice?: StringChoice,
  quotesMax = QUOTES_MAX,
): Generator<void, Outline, undefined> {
  const strings: Buffer[] = [];
  const parts: Uint8Array[] = [];
  let from = 0;
  let at = 0;
  const quotes = { remaining: quotesMax, inTurn: QUOTES_AT_ONCE };
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

function* stringEnd(
  bytes: Buffer,
  start: number,
  quotes: { remaining: number; inTurn: number },
): Generator<void, number, undefined> {
  let at = start + 1;
  for (;;) {
    const turn = bytes.subarray(at, at + SEARCHED_BYTES);
    const index = turn.indexOf(QUOTE);
    if (index === -1) {
      if (turn.length < SEARCHED_BYTES) throw malformed('its reply is not valid JSON: a string has no end');
      at += SEARCHED_BYTES;
      yield;
      continue;
    }
    const quote = at + index;
    if (--quotes.remaining < 0) throw tooLarge('its reply has too many strings');
    if (--quotes.inTurn === 0) {
      quotes.inTurn = QUOTES_AT_ONCE;
      yield;
    }
    let before = quote - 1;
    while (before > start && bytes[before] === BACKSLASH) before--;
    if ((quote - 1 - before) % 2 === 0) return quote;
    at = quote + 1;
  }
}

/**
 * A JSON text in which marks replace large strings. It can be edited like any text, and `large.piecesOf` gives its
 * bytes.
 */
export interface MarkedText {
  readonly text: string;
  readonly large: LargeStrings;
}

const MARK = /large-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/**
 * The large strings of one answer. As part of the text, 40 MB of base64 would be copied, searched and encoded within
 * single turns of the event loop. Marks are random, so that no other text looks like a mark.
 */
export class LargeStrings {
  readonly #bytes = new Map<string, Uint8Array>();

  /** Stores the bytes between the quotes of a JSON string. Returns the mark that replaces them in the text. */
  mark(bytes: Uint8Array): string {
    const mark = `large-${randomUUID()}`;
    this.#bytes.set(mark, bytes);
    return mark;
  }

  isIn(text: string): boolean {
    return this.#bytes.size > 0 && this.#marksIn(text).length > 0;
  }

  /** Frees the strings of a text that was written and is not needed again. */
  forget(text: string): void {
    if (this.#bytes.size > 0) for (const { 0: mark } of this.#marksIn(text)) this.#bytes.delete(mark);
  }

  /** The bytes of a text, with each mark replaced by its string. The strings are not copied. */
  piecesOf(text: string): readonly Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let from = 0;
    for (const { 0: mark, index } of this.#marksIn(text)) {
      pieces.push(Buffer.from(text.slice(from, index)), this.#bytes.get(mark)!);
      from = index + mark.length;
    }
    pieces.push(Buffer.from(text.slice(from)));
    return pieces;
  }

  #marksIn(text: string): RegExpExecArray[] {
    return [...text.matchAll(MARK)].filter(({ 0: mark }) => this.#bytes.has(mark));
  }
}

/** The number of bytes of all pieces. */
export const lengthOf = (pieces: readonly Uint8Array[]): number =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** The bytes of a text, as several pieces if it has marks. */
export const piecesOfText = (text: string | MarkedText): readonly Uint8Array[] =>
  typeof text === 'string' ? [Buffer.from(text)] : text.large.piecesOf(text.text);

/** The number of characters of a text, in which each mark counts as itself. */
export const charsOf = (text: string | MarkedText): number =>
  typeof text === 'string' ? text.length : text.text.length;

/** All pieces as one buffer; null if they are longer than `bytesMax`. A single piece is not copied. */
export function wholePiece(pieces: readonly Uint8Array[], bytesMax: number): Buffer | null {
  const [first, ...more] = pieces;
  if (lengthOf(pieces) > bytesMax) return null;
  return first && more.length === 0
    ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
    : Buffer.concat(pieces);
}

/** Edits a text. `edit` must keep its marks. */
export function editText<S extends string | MarkedText>(text: S, edit: (text: string) => string): S {
  const marked: string | MarkedText = text;
  return (typeof marked === 'string' ? edit(marked) : { ...marked, text: edit(marked.text) }) as S;
}

/** Shorter strings stay in the text. */
const LARGE_BYTES = 64 * 1024;
/** Bytes that are checked in one turn of the event loop: about half a millisecond. */
const CHECKED_BYTES = 512 * 1024;

/**
 * A JSON text with a mark instead of each large string, so that no more than the rest has to be parsed. A string with
 * an escape, or with characters other than those of ASCII, stays: it would have to be parsed to see that it is valid.
 * Files are in base64, which has neither. Rejects with UpstreamFailure for a string without an end.
 */
export async function markLargeStrings(json: Buffer, strings: LargeStrings): Promise<Buffer> {
  return (await inTurns(outlineInTurns(json, LARGE_BYTES, { isTaken: isPlain, markOf: (one) => strings.mark(one) })))
    .json;
}

/**
 * Runs work that yields between its pieces: each piece in its own turn of the event loop, or, if pieces are small, as
 * many in a turn as `turnMs` allow.
 */
export async function inTurns<T>(work: Generator<void, T, undefined>, turnMs = 0): Promise<T> {
  for (;;) {
    await ownTurn();
    const end = performance.now() + turnMs;
    do {
      const { done, value } = work.next();
      if (done) return value;
    } while (performance.now() < end);
  }
}

/** Bytes that may not stand in a JSON string, or that have to be decoded. */
const NOT_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => Number(byte < 0x20 || byte > 0x7e || byte === 0x5c));

function* isPlain(bytes: Buffer): Generator<void, boolean, undefined> {
  for (let at = 0; at < bytes.length; at += CHECKED_BYTES) {
    if (at > 0) yield;
    const end = Math.min(bytes.length, at + CHECKED_BYTES);
    let other = 0;
    for (let i = at; i < end; i++) other |= NOT_PLAIN[bytes[i]!]!;
    if (other !== 0) return false;
  }
  return true;
}
