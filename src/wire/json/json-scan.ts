/** A JSON text has broken syntax, a duplicate key, or another value than the expected object or array. */
export class RawJsonError extends Error {
  override readonly name = 'RawJsonError';
}

export const QUOTE = 0x22;
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

/** The index after the closing quote of the string whose opening quote is at `start`. */
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

/** The index after the key at `start`. */
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
  while (i < length) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = stringEnd(text, i);
        continue;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (--depth === 0) return i + 1;
    }
    i++;
  }
  throw new RawJsonError(`a value is not closed (it begins at position ${start})`);
}

/** The index after a number or a word. */
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

export function unexpected(text: string, at: number, wanted: string): RawJsonError {
  const found = at < text.length ? JSON.stringify(text[at]) : 'the end';
  return new RawJsonError(`expected ${wanted} but found ${found} (at position ${at})`);
}

export const duplicate = (key: string, at: number): RawJsonError =>
  new RawJsonError(`duplicate key ${JSON.stringify(key)} in an object (at position ${at})`);
