/** A JSON text has broken syntax, a duplicate key, or another value than the expected object or array. */
export class RawJsonError extends Error {
  override readonly name = 'RawJsonError';
}

/** The position of a value in the text, as UTF-16 offsets. `end` is after its last character. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The span of the member's value. `keyStart` is the opening quote of its key. */
export interface JsonMember extends Span {
  readonly keyStart: number;
}

/** Maps decoded keys to members, in the order of the text. */
export type Members = ReadonlyMap<string, JsonMember>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** The index of the first character at or after `from` that is not white space. */
export function skipSpace(text: string, from: number): number {
  let i = from;
  for (;;) {
    const code = text.charCodeAt(i);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return i;
    i++;
  }
}

/**
 * Characters that are checked one by one before the native search is used. For short strings and many escapes the
 * native call costs more.
 */
const NEAR = 32;

function stringEnd(text: string, start: number): number {
  const { length } = text;
  let i = start + 1;
  for (;;) {
    const near = Math.min(i + NEAR, length);
    for (; i < near; i++) {
      const code = text.charCodeAt(i);
      if (code === QUOTE) return i + 1;
      if (code === BACKSLASH) i++;
    }
    // The character at `i` is not escaped. Only the backslashes between `i` and the next quote count, so each is looked
    // at once.
    const quote = text.indexOf('"', i);
    if (quote === -1) throw new RawJsonError(`a string is not closed (it begins at position ${start})`);
    let before = quote - 1;
    while (before >= i && text.charCodeAt(before) === BACKSLASH) before--;
    if ((quote - 1 - before) % 2 === 0) return quote + 1;
    i = quote + 1;
  }
}

export function keyEnd(text: string, start: number): number {
  if (text.charCodeAt(start) !== QUOTE) throw unexpected(text, start, 'a key');
  return stringEnd(text, start);
}

export function decodeKey(text: string, start: number, end: number): string {
  const written = text.slice(start + 1, end - 1);
  if (!written.includes('\\')) return written;
  try {
    return JSON.parse(text.slice(start, end)) as string;
  } catch {
    throw new RawJsonError(`a key is not a valid JSON string (at position ${start})`);
  }
}

/**
 * The index after the value at `start`. Nested values are skipped by counting brackets, in linear time and without
 * recursion.
 */
export function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return stringEnd(text, start);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return scalarEnd(text, start);
  const { length } = text;
  let depth = 1;
  let i = start + 1;
  let plain = 0;
  while (i < length) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = stringEnd(text, i);
        plain = 0;
        continue;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth === 0) return i + 1;
        break;
      default:
        if (++plain < LONG_RUN) break;
        plain = 0;
        i = nextStructure(text, i);
        continue;
    }
    i++;
  }
  throw new RawJsonError(`a value is not closed (it begins at position ${start})`);
}

/** For a longer run of numbers or white space, the native search is faster than a loop. */
const LONG_RUN = 64;
const STRUCTURE = /["{}[\]]/g;

/** The index of the next quote or bracket, or the end. */
function nextStructure(text: string, from: number): number {
  STRUCTURE.lastIndex = from;
  return STRUCTURE.test(text) ? STRUCTURE.lastIndex - 1 : text.length;
}

function scalarEnd(text: string, start: number): number {
  let i = start;
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= 0x20) break;
    if (code === QUOTE || code === COLON || code === OPEN_BRACE || code === OPEN_BRACKET)
      throw unexpected(text, i, 'a value');
  }
  if (i === start) throw unexpected(text, i, 'a value');
  return i;
}

export function unexpected(text: string, at: number, expected: string): RawJsonError {
  const actual = at < text.length ? JSON.stringify(text[at]) : 'the end';
  return new RawJsonError(`expected ${expected} but found ${actual} (at position ${at})`);
}

export const duplicate = (key: string, at: number): RawJsonError =>
  new RawJsonError(`duplicate key ${JSON.stringify(key)} in an object (at position ${at})`);

/** From this many keys on, a set finds a key faster than a search. */
const MANY = 12;

interface Keys {
  readonly list: string[];
  set: Set<string> | null;
}

/**
 * Like membersOf, and also throws for duplicate keys in the objects at all levels inside. Linear time, no recursion.
 */
export function uniqueMembersOf(text: string, at = 0): Members {
  const members = new Map<string, JsonMember>();
  const around: (Keys | null)[] = [];
  let keys: Keys | null = null;
  let name = '';
  let keyStart = 0;
  let start = 0;
  let plain = 0;
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACE) throw unexpected(text, i, 'an object');
  for (; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const behind = keyEnd(text, i);
        const colon = keys === null ? -1 : skipSpace(text, behind);
        if (keys === null || text.charCodeAt(colon) !== COLON) {
          i = behind - 1;
          break;
        }
        const key = decodeKey(text, i, behind);
        if (had(keys, key)) throw duplicate(key, i);
        const value = skipSpace(text, colon + 1);
        const first = text.charCodeAt(value);
        const isInside = first === OPEN_BRACE || first === OPEN_BRACKET;
        const end = isInside ? value : valueEnd(text, value);
        if (around.length === 1) {
          if (isInside) [name, keyStart, start] = [key, i, value];
          else members.set(key, { keyStart: i, start: value, end });
        }
        i = end - 1;
        break;
      }
      case OPEN_BRACE:
        around.push(keys);
        keys = { list: [], set: null };
        break;
      case OPEN_BRACKET:
        around.push(keys);
        keys = null;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        keys = around.pop()!;
        if (around.length === 0) return members;
        if (around.length === 1) members.set(name, { keyStart, start, end: i + 1 });
        break;
      default:
        if (++plain < LONG_RUN) continue;
        i = nextStructure(text, i) - 1;
    }
    plain = 0;
  }
  throw unexpected(text, i, 'the end of the object');
}

function had(keys: Keys, key: string): boolean {
  const { list, set } = keys;
  if (set !== null) return set.size === set.add(key).size;
  if (list.includes(key)) return true;
  list.push(key);
  if (list.length === MANY) keys.set = new Set(list);
  return false;
}
