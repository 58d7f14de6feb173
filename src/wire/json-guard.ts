import { isUtf8 } from 'node:buffer';
import { GatewayError } from './errors.ts';
import { syntaxFault } from './json/syntax-error.ts';
import { Halves, wellFormedText } from './json/well-formed.ts';
import { ownTurn } from './reply/own-turn.ts';

/** How much structure a JSON text may have. The caps are checked on the bytes, before anything is built from them. */
export interface JsonLimits {
  readonly jsonDepthMax: number;
  /** Caps object keys, and objects and arrays together. */
  readonly jsonKeysMax: number;
  /** Elements of all arrays; default 20 for each key that there may be. */
  readonly jsonElementsMax?: number;
  /** For replies: invalid UTF-8 is replaced instead of refused, and halves of characters stay. */
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
 * Array elements are cheaper to build than keys (a number takes 16 bytes), so an embedding or a token list may have
 * more of them.
 */
const ELEMENTS_PER_KEY = 20;

/**
 * Of all names together, for each key that there may be. Names are compared with others, which takes longer than to
 * read a text.
 */
const NAME_BYTES_PER_KEY = 64;

/**
 * A number of more digits is counted, and so many digits are read of such numbers: reading them takes the square of
 * their length.
 */
const LONG_NUMBER = 64;
const LONG_NUMBERS_BYTES_MAX = 64 * 1024;

/** From this length on a string's end is searched natively. Below, the loop is faster than the call. */
const SHORT_STRING = 64;

/**
 * Parses JSON bytes from a stranger. Throws GatewayError `invalid_request` that names the position (in bytes) of the
 * fault: nesting deeper than `jsonDepthMax`, more keys than `jsonKeysMax`, or broken syntax. Time is linear in the
 * length. Keys such as `__proto__` become plain own properties. Of duplicate keys the last one counts. A number that
 * no double holds (a 64-bit bound in a tool's schema) becomes an object that JSON.stringify writes as it came. An
 * escaped half of a character becomes U+FFFD.
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): unknown {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const small = parseSmall(buffer, start, limits);
  if (small !== undefined) return small;
  const structure = checkStructure(buffer, start, limits);
  return parseText(textOf(buffer, start, limits), structure.inexact, start);
}

/** Throws GatewayError for bytes that are no UTF-8, unless it repairs them. */
function textOf(buffer: Buffer, start: number, { repairText }: JsonLimits): string {
  if (repairText) return buffer.toString('utf8', start);
  const text = wellFormedText(start === 0 ? buffer : buffer.subarray(start));
  // What is no UTF-8 leaves this mark. To look for it is free where all is ASCII.
  if (text.includes(REPLACEMENT) && !isUtf8(buffer)) throw noUtf8();
  return text;
}

const REPLACEMENT = '\ufffd';

/** Up to here a value is built before its depth is known. */
const SMALL_BYTES = 48 * 1024;
/** `"":0,` */
const KEY_BYTES_MIN = 5;

/**
 * The value of a body with so few bytes that it has neither too many keys nor too many elements. undefined where its
 * bytes have to be looked at: it is too deep, may have too many objects, is not valid, or has a number that no double
 * holds.
 */
function parseSmall(buffer: Buffer, start: number, limits: JsonLimits): unknown {
  const { jsonDepthMax, jsonKeysMax, jsonElementsMax = jsonKeysMax * ELEMENTS_PER_KEY } = limits;
  const { byteLength } = buffer;
  if (byteLength > Math.min(SMALL_BYTES, jsonKeysMax * KEY_BYTES_MIN, jsonElementsMax)) return undefined;
  try {
    const value: unknown = JSON.parse(textOf(buffer, start, limits));
    // What a name hid that came again is not counted: it is gone.
    containersLeft = jsonKeysMax;
    return isPlain(value, jsonDepthMax) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How many objects and arrays a value may still have. */
let containersLeft = 0;

/** Whether a value is nested at most so deep, and all its numbers are what they were as text. */
function isPlain(value: unknown, depthMax: number): boolean {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (typeof value !== 'object' || value === null) return true;
  if (depthMax === 0 || containersLeft-- <= 0) return false;
  if (Array.isArray(value)) return value.every((element) => isPlain(element, depthMax - 1));
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depthMax - 1)) return false;
  return true;
}

/** A larger body is read in turns of the event loop. Below, the worst takes some 20 ms. */
const IN_TURNS_BYTES = 512 * 1024;
/** Bytes of a large body that are read in one turn: some 10 ms for the worst of them. */
const SLICE_BYTES = 1024 * 1024;

/**
 * parseJson for a body that may be large: such a one is read in turns of the event loop, and so rejects. The caller
 * goes on in a turn of its own.
 */
export function readJson(buffer: Buffer, limits: JsonLimits): unknown {
  return buffer.byteLength <= IN_TURNS_BYTES ? parseJson(buffer, limits) : parseInTurns(buffer, limits);
}

async function parseInTurns(buffer: Buffer, limits: JsonLimits): Promise<unknown> {
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const structure = new Structure(buffer, start, limits);
  const text = await textInTurns(buffer, start, structure);
  await ownTurn();
  const value = parseText(text, structure.inexact, start);
  await ownTurn();
  return value;
}

async function textInTurns(buffer: Buffer, start: number, structure: Structure): Promise<string> {
  do await ownTurn();
  while (!structure.look(SLICE_BYTES));
  await ownTurn();
  if (!isUtf8(buffer)) throw noUtf8();
  const halves = new Halves(start === 0 ? buffer : buffer.subarray(start));
  while (!halves.repair(SLICE_BYTES)) await ownTurn();
  await ownTurn();
  return halves.json.toString('utf8');
}

function parseText(text: string, inexact: boolean, start: number): unknown {
  try {
    return (inexact ? JSON.parse(text, keepExact) : JSON.parse(text)) as unknown;
  } catch (error) {
    const fault = syntaxFault(text, error, start);
    throw new GatewayError(
      'invalid_request',
      fault === null ? 'The body is empty; send a JSON object' : `The body is not valid JSON: ${fault}`,
      {
        cause: error,
      },
    );
  }
}

/** Bytes that are no text. */
export class NotUtf8 extends GatewayError {}

const noUtf8 = () => new NotUtf8('invalid_request', 'The body is not valid UTF-8');

/**
 * The text of JSON bytes from a stranger whose structure is within the limits, not parsed yet; for a protocol that
 * reads it by itself. An escaped half of a character in it is U+FFFD. Throws GatewayError `invalid_request` as
 * parseJson does.
 */
export function jsonText(bytes: Uint8Array, limits: JsonLimits): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  checkStructure(buffer, start, limits);
  return textOf(buffer, start, limits);
}

/** jsonText for a body that may be large, as readJson is parseJson for one. */
export async function readJsonText(buffer: Buffer, limits: JsonLimits): Promise<string> {
  if (buffer.byteLength <= IN_TURNS_BYTES) return jsonText(buffer, limits);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const text = await textInTurns(buffer, start, new Structure(buffer, start, limits));
  await ownTurn();
  return text;
}

/**
 * Refuses JSON bytes whose structure is beyond the limits, as parseJson does; whether they are JSON is not looked at.
 */
export function guardStructure(bytes: Uint8Array, limits: JsonLimits): void {
  checkStructure(
    Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    0,
    limits,
  );
}

function hasByteOrderMark(buffer: Buffer): boolean {
  return buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf;
}

function checkStructure(buffer: Buffer, start: number, limits: JsonLimits): Structure {
  const structure = new Structure(buffer, start, limits);
  structure.look(buffer.length);
  return structure;
}

/** The structure of JSON bytes, looked at piece by piece. Throws where it is beyond the limits. */
class Structure {
  readonly #buffer: Buffer;
  readonly #limits: Required<Pick<JsonLimits, 'jsonDepthMax' | 'jsonKeysMax' | 'jsonElementsMax'>>;
  #at: number;
  #inString = false;
  #stringFrom = 0;
  #stringBytes = 0;
  #nameBytes = 0;
  #longNumbers = false;
  #longNumberBytes = 0;
  #depth = 0;
  #containers = 0;
  #keys = 0;
  #commas = 0;

  constructor(
    buffer: Buffer,
    start: number,
    { jsonDepthMax, jsonKeysMax, jsonElementsMax = jsonKeysMax * ELEMENTS_PER_KEY }: JsonLimits,
  ) {
    this.#buffer = buffer;
    this.#at = start;
    this.#limits = { jsonDepthMax, jsonKeysMax, jsonElementsMax };
  }

  /** It has numbers that a double may not hold, and few enough values to look at each. */
  get inexact(): boolean {
    return this.#longNumbers && this.#commas + this.#keys <= EXACT_VALUES_MAX;
  }

  /** Looks at about so many bytes more. True at the end. */
  look(bytes: number): boolean {
    const buffer = this.#buffer;
    const until = Math.min(buffer.length, this.#at + bytes);
    const { jsonDepthMax, jsonKeysMax, jsonElementsMax } = this.#limits;
    let i = this.#at;
    if (this.#inString) i = this.#throughString(i, until);
    for (; i < until; i++) {
      switch (buffer[i]) {
        case QUOTE:
          this.#stringFrom = i;
          i = this.#throughString(i + 1, until) - 1;
          break;
        case OPEN_BRACE:
        case OPEN_BRACKET:
          if (++this.#depth > jsonDepthMax) throw refusal(`is nested deeper than ${jsonDepthMax} levels`, i);
          if (++this.#containers > jsonKeysMax) throw tooMuch(`has more than ${jsonKeysMax} objects and arrays`, i);
          break;
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#depth--;
          break;
        case COLON:
          if (++this.#keys > jsonKeysMax) throw tooMuch(`has more than ${jsonKeysMax} keys`, i);
          this.#nameBytes += this.#stringBytes;
          if (this.#nameBytes > jsonKeysMax * NAME_BYTES_PER_KEY)
            throw tooMuch(`has keys of more than ${jsonKeysMax * NAME_BYTES_PER_KEY} bytes together`, i);
          break;
        case COMMA:
          if (++this.#commas > jsonElementsMax) throw tooMuch(`has more than ${jsonElementsMax} elements`, i);
          break;
        default:
          if (isDigit(buffer[i])) i = this.#throughNumber(i);
      }
    }
    this.#at = i;
    return i >= buffer.length;
  }

  /** Behind the quote that ends the string, or where the piece ends within it. */
  #throughString(from: number, until: number): number {
    const end = stringEnd(this.#buffer, from, until);
    this.#inString = end < 0;
    // Without an end it is no JSON, which JSON.parse says.
    if (end < 0) return ~end;
    this.#stringBytes = end - this.#stringFrom;
    return end + 1;
  }

  /** At the last character of the number. */
  #throughNumber(first: number): number {
    const buffer = this.#buffer;
    let i = first;
    let scientific = false;
    for (; isInNumber(buffer[i + 1]); i++) scientific ||= isExponent(buffer[i + 1]);
    this.#longNumbers ||= scientific || i - first >= SAFE_DIGITS;
    if (i - first > LONG_NUMBER && (this.#longNumberBytes += i - first) > LONG_NUMBERS_BYTES_MAX)
      throw tooMuch(`has long numbers of more than ${LONG_NUMBERS_BYTES_MAX} digits together`, first);
    return i;
  }
}

/** All integers of so many digits are doubles. */
const SAFE_DIGITS = 15;
/** Looking at each value costs several times the parse; above this many, numbers are what doubles make of them. */
const EXACT_VALUES_MAX = 10_000;

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 0x30 && byte <= 0x39;
const isExponent = (byte: number | undefined) => byte === 0x65 || byte === 0x45;
const isInNumber = (byte: number | undefined) =>
  isDigit(byte) || isExponent(byte) || byte === 0x2e || byte === 0x2b || byte === 0x2d;

const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON: (text: string) => unknown;
  readonly isRawJSON: (value: unknown) => value is { readonly rawJSON: string };
};

/** True of what parseJson makes of a number that no double holds. */
export const isExactNumber = isRawJSON;

/**
 * A reviver. Decimals are rounded as every reader rounds them; an integer above 2^53, or what overflows, would be
 * another number.
 */
function keepExact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  if (Number.isFinite(value) && (String(value) === context.source || !/^-?\d+$/.test(context.source))) return value;
  return rawJSON(context.source);
}

/**
 * Index of the quote that ends a string. `from` is a position inside the string and not behind a backslash. Without a
 * quote before about `until` it is the complement of such a position there.
 */
function stringEnd(buffer: Buffer, from: number, until: number): number {
  const { length } = buffer;
  let i = from;
  for (;;) {
    const near = Math.min(i + SHORT_STRING, length);
    for (; i < near; i++) {
      const byte = buffer[i];
      if (byte === QUOTE) return i;
      if (byte === BACKSLASH) i++;
    }
    if (i >= length) return ~length;
    if (i >= until) return ~i;
    // A long string, such as an image: let the native search jump. `i` is known not to be escaped, so backslashes
    // count down to it only.
    const quote = buffer.indexOf(QUOTE, i);
    if (quote === -1) return ~length;
    let backslashes = 0;
    while (quote - 1 - backslashes >= i && buffer[quote - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote;
    i = quote + 1;
  }
}

/** JSON of more keys, objects or elements than are read. It may be right, and just large. */
export class TooMuchStructure extends GatewayError {}

const refusal = (what: string, position: number) =>
  new GatewayError('invalid_request', `The body ${what} (at position ${position})`);
const tooMuch = (what: string, position: number) =>
  new TooMuchStructure('invalid_request', `The body ${what} (at position ${position})`);
