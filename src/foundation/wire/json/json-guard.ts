import { isAscii, isUtf8 } from 'node:buffer';
import { GatewayError } from '#errors';
import { parsePieces, PieceError, stringEnd } from './parse-pieces.ts';
import { faultAt, syntaxFault } from './syntax-error.ts';
import { Halves, wellFormedText } from './well-formed.ts';
import { ownTurn } from '../long-work.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Limits for the structure of a JSON text. They are checked on the bytes, before any value is built. */
export interface JsonLimits {
  readonly jsonDepthMax: number;
  /** The most keys. Also the most objects and arrays, counted together. */
  readonly jsonKeysMax: number;
  /**
   * The most commas, which counts array elements and members, and strings that are no keys: each is compared with those
   * that came before. Default: 20 per allowed key.
   */
  readonly jsonElementsMax?: number;
  /** The most bytes of the text. Default: its source has a bound of its own. */
  readonly bytesMax?: number;
  /** The most bytes beside long strings of plain ASCII, such as pictures. Default: `bytesMax`. */
  readonly denseBytesMax?: number;
  /** For replies: invalid UTF-8 is replaced instead of refused, and escaped lone surrogates stay. */
  readonly repairText?: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * An array element costs less memory than a key (a number takes 16 bytes), so there may be more elements, as in an
 * embedding or a token list.
 */
const ELEMENTS_PER_KEY = 20;

/**
 * Bytes of all keys together, per allowed key. Keys are compared with other names, which takes longer than reading a
 * text.
 */
const NAME_BYTES_PER_KEY = 64;

/**
 * Numbers with more characters count as long; a double needs 24 at most. The total length of long numbers is limited,
 * because the time to parse a number grows with the square of its length.
 */
const LONG_NUMBER = 32;
const LONG_NUMBERS_BYTES_MAX = 64 * 1024;

/** Longer strings of ASCII without escapes do not count as dense: to read them takes 2 ms for a megabyte at most. */
const LONG_STRING = 64 * 1024;

/**
 * Parses untrusted JSON bytes in linear time. Throws GatewayError `invalid_request` for structure beyond the limits,
 * broken syntax or invalid UTF-8; a fault of structure or syntax is named with its position in bytes. Keys such as
 * `__proto__` become plain own properties. With duplicate keys the last value counts. A number that a double cannot
 * hold (such as a 64-bit bound in a tool's schema) becomes an object that JSON.stringify writes unchanged. An escaped
 * lone surrogate becomes U+FFFD.
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): unknown {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const small = parseSmall(buffer, start, limits);
  if (small !== undefined) return small;
  const structure = checkStructure(buffer, start, limits);
  return parseText(textOf(buffer, start, limits), structure.inexact, start);
}

/** Decodes the bytes. Throws GatewayError for invalid UTF-8, unless `repairText` is set. */
function textOf(buffer: Buffer, start: number, { repairText }: JsonLimits): string {
  if (repairText) return buffer.toString('utf8', start);
  const text = wellFormedText(start === 0 ? buffer : buffer.subarray(start));
  // Invalid UTF-8 decodes to this character. Searching for it costs nothing if the whole text is ASCII.
  if (text.includes(REPLACEMENT) && !isUtf8(buffer)) throw noUtf8();
  return text;
}

const REPLACEMENT = '\ufffd';

const UNLIMITED: JsonLimits = { jsonDepthMax: Infinity, jsonKeysMax: Infinity };

/** As parseJson, for a text whose structure was checked before. */
export const parseExact = (text: string): unknown => parseJson(Buffer.from(text), UNLIMITED);

/** Up to this size, a value is built before its depth is checked. */
const SMALL_BYTES = 48 * 1024;
/** The shortest member: `"":0,` */
const KEY_BYTES_MIN = 5;

/**
 * The value of a body that is too short to have too many keys or elements. undefined if the bytes must be checked: the
 * body is larger, too deep, invalid, may have too many objects, or has a number that a double may not hold.
 */
function parseSmall(buffer: Buffer, start: number, limits: JsonLimits): unknown {
  const { jsonDepthMax, jsonKeysMax, jsonElementsMax = jsonKeysMax * ELEMENTS_PER_KEY } = limits;
  const { byteLength } = buffer;
  if (byteLength > Math.min(SMALL_BYTES, jsonKeysMax * KEY_BYTES_MIN, jsonElementsMax)) return undefined;
  try {
    const value: unknown = JSON.parse(textOf(buffer, start, limits));
    // With duplicate keys only the last value counts, because JSON.parse drops the others.
    containersLeft = jsonKeysMax;
    return isPlain(value, jsonDepthMax) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The number of objects and arrays that a value may still have. */
let containersLeft = 0;

/** True if a value is nested at most `depthMax` levels deep and a double holds each of its numbers exactly. */
function isPlain(value: unknown, depthMax: number): boolean {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (typeof value !== 'object' || value === null) return true;
  if (depthMax === 0 || containersLeft-- <= 0) return false;
  if (Array.isArray(value)) {
    for (const element of value) if (!isPlain(element, depthMax - 1)) return false;
    return true;
  }
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depthMax - 1)) return false;
  return true;
}

/** A larger body is read over several turns of the event loop. The slowest body of this size takes about 20 ms. */
const IN_TURNS_BYTES = 512 * 1024;
/** The same for more keys than this, because a text of keys alone takes several times as long. */
const MANY_KEYS = 20_000;
const MANY_KEYS_BYTES = 128 * 1024;
/** Of one object, which is read in pieces but grows in one: a larger one takes tens of milliseconds to do so. */
const MEMBERS_MAX = 20_000;
/** Bytes of a large body that are read per turn. The slowest take about 10 ms. */
const SLICE_BYTES = 1024 * 1024;

/**
 * parseJson for a body that may be large. A small body is parsed at once: the value is returned, and errors are thrown.
 * A large body gives a promise, which is read over several turns of the event loop and resolves in a separate turn.
 */
export function readJson(buffer: Buffer, limits: JsonLimits): unknown {
  const most = limits.jsonKeysMax > MANY_KEYS ? MANY_KEYS_BYTES : IN_TURNS_BYTES;
  return buffer.byteLength <= most ? parseJson(buffer, limits) : parseInTurns(buffer, limits);
}

async function parseInTurns(buffer: Buffer, limits: JsonLimits): Promise<unknown> {
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const structure = new Structure(buffer, start, limits, MEMBERS_MAX);
  const bytes = await bytesInTurns(buffer, start, structure, limits);
  try {
    return await valueInTurns(bytes, structure.inexact ? parseInexact : JSON.parse);
  } catch (error) {
    if (error instanceof PieceError) throw noJson(faultAt(bytes, error.position, start), error);
    throw error;
  }
}

async function valueInTurns(bytes: Buffer, parse: (text: string) => unknown): Promise<unknown> {
  const work = parsePieces(bytes, parse);
  for (;;) {
    await ownTurn();
    const { done, value } = work.next();
    if (!done) continue;
    // The last piece may be the whole text, and who waits for the value works on it at once.
    await ownTurn();
    return value;
  }
}

/** The bytes without a byte order mark, whose structure and whose characters are checked. */
async function bytesInTurns(buffer: Buffer, start: number, structure: Structure, limits: JsonLimits): Promise<Buffer> {
  do await ownTurn();
  while (!structure.check(SLICE_BYTES));
  const bytes = start === 0 ? buffer : buffer.subarray(start);
  if (limits.repairText) return bytes;
  await ownTurn();
  if (!isUtf8(buffer)) throw noUtf8();
  const halves = new Halves(bytes);
  while (!halves.repair(SLICE_BYTES)) await ownTurn();
  return halves.json;
}

const parseInexact = (text: string): unknown => JSON.parse(text, keepExact) as unknown;

function parseText(text: string, inexact: boolean, start: number): unknown {
  try {
    return inexact ? parseInexact(text) : (JSON.parse(text) as unknown);
  } catch (error) {
    throw noJson(syntaxFault(text, error, start), error);
  }
}

const noJson = (fault: string | null, cause: unknown): GatewayError =>
  new GatewayError(
    'invalid_request',
    fault === null ? 'The body is empty; send a JSON object' : `The body is not valid JSON: ${fault}`,
    { cause },
  );

/** The bytes are not valid UTF-8. */
export class NotUtf8 extends GatewayError {}

const noUtf8 = () => new NotUtf8('invalid_request', 'The body is not valid UTF-8');

/**
 * Checks the structure of untrusted JSON bytes and returns them as text, for a protocol with its own parser. An escaped
 * lone surrogate becomes U+FFFD. Throws GatewayError `invalid_request` as parseJson does, except for broken syntax.
 */
export function jsonText(bytes: Uint8Array, limits: JsonLimits): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  checkStructure(buffer, start, limits);
  return textOf(buffer, start, limits);
}

/** `value`: what JSON.parse gives for the text, if that is known; undefined also for broken syntax. */
export interface ReadText {
  readonly text: string;
  readonly value?: unknown;
}

/** jsonText for a body that may be large. A large body is read, and parsed, over several turns of the event loop. */
export function readJsonText(buffer: Buffer, limits: JsonLimits): ReadText | Promise<ReadText> {
  return buffer.byteLength <= IN_TURNS_BYTES ? { text: jsonText(buffer, limits) } : textInTurns(buffer, limits);
}

async function textInTurns(buffer: Buffer, limits: JsonLimits): Promise<ReadText> {
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const bytes = await bytesInTurns(buffer, start, new Structure(buffer, start, limits, MEMBERS_MAX), limits);
  await ownTurn();
  const text = bytes.toString('utf8');
  try {
    return { text, value: await valueInTurns(bytes, JSON.parse) };
  } catch (error) {
    if (error instanceof PieceError) return { text };
    throw error;
  }
}

/** Throws for structure beyond the limits, as parseJson does. It does not check whether the bytes are valid JSON. */
export function guardStructure(bytes: Uint8Array, limits: JsonLimits): void {
  checkStructure(
    Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    0,
    limits,
  );
}

/** The same for bytes that may be many: a turn of the event loop for each megabyte. */
export async function guardInTurns(bytes: Buffer, limits: JsonLimits): Promise<void> {
  const structure = new Structure(bytes, 0, limits);
  while (!structure.check(SLICE_BYTES)) await ownTurn();
}

/** Whether UTF-8 bytes begin with a byte order mark, which has three bytes. */
export function hasByteOrderMark(buffer: Buffer): boolean {
  return buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf;
}

function checkStructure(buffer: Buffer, start: number, limits: JsonLimits): Structure {
  const structure = new Structure(buffer, start, limits);
  structure.check(buffer.length);
  return structure;
}

/** Checks the structure of JSON bytes, piece by piece. Throws if it is beyond the limits. */
class Structure {
  readonly #buffer: Buffer;
  readonly #limits: Required<Pick<JsonLimits, 'jsonDepthMax' | 'jsonKeysMax' | 'jsonElementsMax'>>;
  #at: number;
  /** The next backslash, or the end. */
  #backslash = -1;
  #escapes = 0;
  #inString = false;
  #stringFrom = 0;
  #stringBytes = 0;
  #nameBytes = 0;
  #longNumbers = false;
  #longNumberBytes = 0;
  #depth = 0;
  readonly #membersMax: number;
  /** The members so far of the open object at each depth. */
  readonly #members: number[] = [];
  #containers = 0;
  #keys = 0;
  #commas = 0;
  /** Strings that are no keys. */
  #strings = 0;
  readonly #denseBytesMax: number;
  /** Bytes so far of long strings of plain ASCII. */
  #plainBytes = 0;

  constructor(
    buffer: Buffer,
    start: number,
    {
      jsonDepthMax,
      jsonKeysMax,
      jsonElementsMax = jsonKeysMax * ELEMENTS_PER_KEY,
      bytesMax = Infinity,
      denseBytesMax = Infinity,
    }: JsonLimits,
    membersMax = Infinity,
  ) {
    if (buffer.length > bytesMax) throw tooMuch(`has more than ${bytesMax} bytes`, bytesMax);
    this.#buffer = buffer;
    this.#at = start;
    this.#limits = { jsonDepthMax, jsonKeysMax, jsonElementsMax };
    this.#membersMax = membersMax;
    this.#denseBytesMax = denseBytesMax;
  }

  /** True if a double may not hold some number, and there are few enough values to check each of them. */
  get inexact(): boolean {
    return this.#longNumbers && this.#commas + this.#keys <= EXACT_VALUES_MAX;
  }

  /** Checks about `bytes` more bytes. Returns true at the end of the buffer. */
  check(bytes: number): boolean {
    const buffer = this.#buffer;
    const most = Math.min(buffer.length, this.#at + bytes);
    let until = this.#denseUntil(most);
    const { jsonDepthMax, jsonKeysMax, jsonElementsMax } = this.#limits;
    let i = this.#at;
    if (this.#inString) i = this.#throughString(i, until);
    for (; i < until; i++) {
      switch (buffer[i]) {
        case QUOTE:
          this.#stringFrom = i;
          this.#strings++;
          i = this.#throughString(i + 1, until) - 1;
          until = this.#denseUntil(most);
          break;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          if (++this.#depth > jsonDepthMax) throw tooMuch(`is nested deeper than ${jsonDepthMax} levels`, i);
          if (++this.#containers > jsonKeysMax) throw tooMuch(`has more than ${jsonKeysMax} objects and arrays`, i);
          this.#members[this.#depth] = 0;
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#depth--;
          break;
        case COLON:
          this.#strings--;
          if (++this.#keys > jsonKeysMax) throw tooMuch(`has more than ${jsonKeysMax} keys`, i);
          if (++this.#members[this.#depth]! > this.#membersMax)
            throw tooMuch(`has an object with more than ${this.#membersMax} members`, i);
          this.#nameBytes += this.#stringBytes;
          if (this.#nameBytes > jsonKeysMax * NAME_BYTES_PER_KEY)
            throw tooMuch(`has keys of more than ${jsonKeysMax * NAME_BYTES_PER_KEY} bytes together`, i);
          break;
        case COMMA:
          if (++this.#commas + this.#strings > jsonElementsMax)
            throw tooMuch(`has more than ${jsonElementsMax} elements and members, of which strings count twice`, i);
          break;
        default:
          if (isDigit(buffer[i])) i = this.#throughNumber(i);
      }
    }
    this.#at = i;
    if (i - this.#plainBytes > this.#denseBytesMax)
      throw tooMuch(`has more than ${this.#denseBytesMax} bytes beside long strings of plain ASCII`, i);
    return i >= buffer.length;
  }

  /** `most`, or the first index at which too many bytes are dense. */
  #denseUntil(most: number): number {
    return Math.min(most, this.#plainBytes + this.#denseBytesMax + 1);
  }

  /** The index after the string's closing quote, or the end of this piece inside the string. */
  #throughString(from: number, until: number): number {
    const end = stringEnd(this.#buffer, from, until);
    this.#inString = end < 0;
    const hasEscapes = this.#countEscapes(from, end < 0 ? ~end : end);
    // A string without an end is a syntax error, which JSON.parse reports later.
    if (end < 0) return ~end;
    this.#stringBytes = end - this.#stringFrom;
    if (end - from > LONG_STRING && !hasEscapes && isAscii(this.#buffer.subarray(from, end)))
      this.#plainBytes += end - from;
    return end + 1;
  }

  #countEscapes(from: number, to: number): boolean {
    const buffer = this.#buffer;
    if (this.#backslash < from) {
      const next = buffer.indexOf(BACKSLASH, from);
      this.#backslash = next === -1 ? buffer.length : next;
    }
    if (this.#backslash >= to) return false;
    for (let i = this.#backslash; i < to; i++)
      if (buffer[i] === BACKSLASH) {
        this.#escapes++;
        i++;
      }
    this.#backslash = to;
    if (this.#escapes > ESCAPES_MAX) throw tooMuch(`has more than ${ESCAPES_MAX} escapes in its texts`, to);
    return true;
  }

  #throughNumber(first: number): number {
    const buffer = this.#buffer;
    let i = first;
    let scientific = false;
    // A number that is too long is not read to its end, which may be megabytes away.
    for (; i - first <= LONG_NUMBERS_BYTES_MAX && isInNumber(buffer[i + 1]); i++)
      scientific ||= isExponent(buffer[i + 1]);
    this.#longNumbers ||= scientific || i - first >= SAFE_DIGITS;
    if (i - first > LONG_NUMBER && (this.#longNumberBytes += i - first) > LONG_NUMBERS_BYTES_MAX)
      throw tooMuch(`has long numbers of more than ${LONG_NUMBERS_BYTES_MAX} digits together`, first);
    return i;
  }
}

/** Decoding so many takes about 20 ms, in a text of any length. */
const ESCAPES_MAX = 1_000_000;

/** A double holds every integer with this many digits. */
const SAFE_DIGITS = 15;
/**
 * Checking each value takes several times as long as the parse. With more values than this, numbers are rounded to
 * doubles.
 */
const EXACT_VALUES_MAX = 10_000;

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 0x30 && byte <= 0x39;
const isExponent = (byte: number | undefined) => byte === 0x65 || byte === 0x45;
const isInNumber = (byte: number | undefined) =>
  isDigit(byte) || isExponent(byte) || byte === 0x2e || byte === 0x2b || byte === 0x2d;

const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON: (text: string) => unknown;
  readonly isRawJSON: (value: unknown) => value is { readonly rawJSON: string };
};

/** True for the object that parseJson makes of a number that a double cannot hold. */
export const isExactNumber = isRawJSON;

/**
 * A reviver for JSON.parse. Decimals are rounded, as in every parser. An integer that a double cannot hold, or a number
 * that overflows, is kept as it was written, because its value would change.
 */
function keepExact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  if (Number.isFinite(value) && (String(value) === context.source || !/^-?\d+$/.test(context.source))) return value;
  return rawJSON(context.source);
}

/** The JSON is nested deeper, or has more keys, objects or elements, than allowed. It may be valid but too large. */
export class TooMuchStructure extends GatewayError {
  /** The excess in words that follow the name of the text: `has more than 100 keys`. */
  readonly what: string;

  constructor(what: string, position: number) {
    super('invalid_request', `The body ${what} (at position ${position})`);
    this.what = what;
  }
}

const tooMuch = (what: string, position: number) => new TooMuchStructure(what, position);
