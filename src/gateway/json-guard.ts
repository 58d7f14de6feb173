import { isUtf8 } from 'node:buffer';
import { GatewayError } from './errors.ts';
import { wellFormedText } from './json/well-formed.ts';

/** How much structure a JSON text may have. The caps are checked on the bytes, before anything is built from them. */
export interface JsonLimits {
  readonly jsonDepthMax: number;
  /** Caps object keys, and objects and arrays together. */
  readonly jsonKeysMax: number;
  /** Elements of all arrays; default 100 for each key that there may be. */
  readonly jsonElementsMax?: number;
  /** For replies: what is no UTF-8 is replaced instead of refused, and halves of characters stay. */
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

/** Array elements are cheaper to build than keys (a number takes 16 bytes), so an embedding or a token list may have more of them. */
const ELEMENTS_PER_KEY = 100;

/** From this length on a string's end is searched natively. Below, the loop is faster than the call. */
const SHORT_STRING = 64;

/**
 * Parses JSON bytes from a stranger. Throws GatewayError `invalid_request` that names the position (in bytes) of what is wrong:
 * nesting deeper than `jsonDepthMax`, more keys than `jsonKeysMax`, or text that is no JSON. Time is linear in the length.
 * Keys such as `__proto__` become plain own properties. Of duplicate keys the last one counts.
 * A number that no double holds (a 64-bit bound in a tool's schema) becomes an object that JSON.stringify writes as it came.
 * An escaped half of a character becomes U+FFFD.
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): unknown {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  const { inexact } = checkStructure(buffer, start, limits);
  if (!limits.repairText && !isUtf8(buffer)) throw new GatewayError('invalid_request', 'The body is not valid UTF-8');
  const text = limits.repairText ? buffer.toString('utf8', start) : wellFormedText(start === 0 ? buffer : buffer.subarray(start));
  try {
    return (inexact ? JSON.parse(text, keepExact) : JSON.parse(text)) as unknown;
  } catch (error) {
    if (text.trim() === '') throw new GatewayError('invalid_request', 'The body is empty; send a JSON object', { cause: error });
    const position = start + Buffer.byteLength(text.slice(0, syntaxErrorAt(text)));
    throw new GatewayError('invalid_request', `The body is not valid JSON: ${says(buffer, position)}`, { cause: error });
  }
}

/**
 * The text of JSON bytes from a stranger whose structure is within the limits, not parsed yet; for a protocol that reads it by itself.
 * An escaped half of a character in it is U+FFFD. Throws GatewayError `invalid_request` as parseJson does.
 */
export function jsonText(bytes: Uint8Array, limits: JsonLimits): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = hasByteOrderMark(buffer) ? 3 : 0;
  checkStructure(buffer, start, limits);
  if (!isUtf8(buffer)) throw new GatewayError('invalid_request', 'The body is not valid UTF-8');
  return wellFormedText(start === 0 ? buffer : buffer.subarray(start));
}

/** Refuses JSON bytes whose structure is beyond the limits, as parseJson does; whether they are JSON is not looked at. */
export function guardStructure(bytes: Uint8Array, limits: JsonLimits): void {
  checkStructure(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, limits);
}

function hasByteOrderMark(buffer: Buffer): boolean {
  return buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf;
}

/** `inexact`: it has numbers that a double may not hold, and few enough values to look at each. */
function checkStructure(buffer: Buffer, start: number, limits: JsonLimits): { readonly inexact: boolean } {
  const { jsonDepthMax, jsonKeysMax, jsonElementsMax = jsonKeysMax * ELEMENTS_PER_KEY } = limits;
  let longNumbers = false;
  let depth = 0;
  let containers = 0;
  let keys = 0;
  let commas = 0;
  for (let i = start; i < buffer.length; i++) {
    switch (buffer[i]) {
      case QUOTE:
        i = stringEnd(buffer, i + 1);
        if (i === -1) return { inexact: false }; // Unterminated: JSON.parse says so.
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth > jsonDepthMax) throw refusal(`is nested deeper than ${jsonDepthMax} levels`, i);
        if (++containers > jsonKeysMax) throw tooMuch(`has more than ${jsonKeysMax} objects and arrays`, i);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--;
        break;
      case COLON:
        if (++keys > jsonKeysMax) throw tooMuch(`has more than ${jsonKeysMax} keys`, i);
        break;
      case COMMA:
        if (++commas > jsonElementsMax) throw tooMuch(`has more than ${jsonElementsMax} elements`, i);
        break;
      default:
        if (isDigit(buffer[i])) {
          const first = i;
          let scientific = false;
          for (; isInNumber(buffer[i + 1]); i++) scientific ||= isExponent(buffer[i + 1]);
          longNumbers ||= scientific || i - first >= SAFE_DIGITS;
        }
    }
  }
  return { inexact: longNumbers && commas + keys <= EXACT_VALUES_MAX };
}

/** All integers of so many digits are doubles. */
const SAFE_DIGITS = 15;
/** Looking at each value costs several times the parse; above this many, numbers are what doubles make of them. */
const EXACT_VALUES_MAX = 10_000;

const isDigit = (byte: number | undefined) => byte !== undefined && byte >= 0x30 && byte <= 0x39;
const isExponent = (byte: number | undefined) => byte === 0x65 || byte === 0x45;
const isInNumber = (byte: number | undefined) => isDigit(byte) || isExponent(byte) || byte === 0x2e || byte === 0x2b || byte === 0x2d;

const { rawJSON, isRawJSON } = JSON as unknown as {
  readonly rawJSON: (text: string) => unknown;
  readonly isRawJSON: (value: unknown) => value is { readonly rawJSON: string };
};

/** True of what parseJson makes of a number that no double holds. */
export const isExactNumber = isRawJSON;

/** A reviver. Decimals are rounded as every reader rounds them; an integer above 2^53, or what overflows, would be another number. */
function keepExact(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  if (Number.isFinite(value) && (String(value) === context.source || !/^-?\d+$/.test(context.source))) return value;
  return rawJSON(context.source);
}

/** Index of the quote that ends the string whose text begins at `from`; -1 when there is none. */
function stringEnd(buffer: Buffer, from: number): number {
  const { length } = buffer;
  let i = from;
  for (;;) {
    const near = Math.min(i + SHORT_STRING, length);
    for (; i < near; i++) {
      const byte = buffer[i];
      if (byte === QUOTE) return i;
      if (byte === BACKSLASH) i++;
    }
    if (i >= length) return -1;
    // A long string, such as an image: let the native search jump. `i` is known not to be escaped, so backslashes count down to it only.
    const quote = buffer.indexOf(QUOTE, i);
    if (quote === -1) return -1;
    let backslashes = 0;
    while (quote - 1 - backslashes >= i && buffer[quote - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote;
    i = quote + 1;
  }
}

/** JSON of more keys, objects or elements than are read. It may be right, and just large. */
export class TooMuchStructure extends GatewayError {}

const refusal = (what: string, position: number) => new GatewayError('invalid_request', `The body ${what} (at position ${position})`);
const tooMuch = (what: string, position: number) => new TooMuchStructure('invalid_request', `The body ${what} (at position ${position})`);

function says(buffer: Buffer, position: number): string {
  if (position >= buffer.length) return `it ends too early, at position ${position}`;
  const byte = buffer[position]!;
  const shown = byte > 0x20 && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `byte 0x${byte.toString(16).padStart(2, '0')}`;
  return `unexpected ${shown} at position ${position}`;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const PLAIN_ESCAPES = '"\\/bfnrt';

type Expected = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'comma or end';

/**
 * Index of the first character at which `text` stops being JSON; its length when it only ends too early.
 * V8 says the position of some errors only, so this is asked after JSON.parse refused.
 */
function syntaxErrorAt(text: string): number {
  const open: string[] = [];
  let i = 0;
  let expects = 'value' as Expected;
  for (;;) {
    while (text[i] === ' ' || text[i] === '\t' || text[i] === '\n' || text[i] === '\r') i++;
    const char = text[i];
    if (char === undefined) return text.length;
    if (expects === 'colon') {
      if (char !== ':') return i;
      expects = 'value';
      i++;
    } else if (expects === 'comma or end') {
      const closing = open.at(-1);
      if (closing === undefined) return i;
      if (char === ',') expects = closing === '}' ? 'key' : 'value';
      else if (char === closing) open.pop();
      else return i;
      i++;
    } else if ((expects === 'first value' && char === ']') || (expects === 'first key' && char === '}')) {
      open.pop();
      expects = 'comma or end';
      i++;
    } else if (char === '"') {
      const end = stringErrorOrEnd(text, i + 1);
      if (end < 0) return -1 - end;
      expects = expects === 'key' || expects === 'first key' ? 'colon' : 'comma or end';
      i = end;
    } else if (expects === 'key' || expects === 'first key') return i;
    else if (char === '{' || char === '[') {
      open.push(char === '{' ? '}' : ']');
      expects = char === '{' ? 'first key' : 'first value';
      i++;
    } else {
      const scalar = char === '-' || (char >= '0' && char <= '9') ? NUMBER : WORD;
      scalar.lastIndex = i;
      if (!scalar.test(text)) return i;
      i = scalar.lastIndex;
      expects = 'comma or end';
    }
  }
}

/** Index after the closing quote, or -1 − the index of what may not be in a string. */
function stringErrorOrEnd(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const char = text[i]!;
    if (char === '"') return i + 1;
    if (char < ' ') return -1 - i;
    if (char !== '\\') continue;
    const escape = text[++i];
    if (escape === undefined) break;
    if (escape === 'u' && /^[\da-fA-F]{4}$/.test(text.slice(i + 1, i + 5))) i += 4;
    else if (!PLAIN_ESCAPES.includes(escape)) return -1 - i;
  }
  return -1 - text.length;
}
