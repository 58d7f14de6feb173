/** Where a value stands in a text: UTF-16 offsets, `end` is behind its last character. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The span is the value's; `keyStart` is the opening quote of its key. */
export interface Member extends Span {
  readonly keyStart: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Values by key of the object at `at`, after white space, in text that JSON.parse accepts. Empty where something
 * else stands there; null where a key stands twice, since readers differ in which of the two they take.
 */
export function membersOf(text: string, at = 0): ReadonlyMap<string, Member> | null {
  const members = new Map<string, Member>();
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACE) return members;
  i = skipSpace(text, i + 1);
  while (text.charCodeAt(i) !== CLOSE_BRACE) {
    const keyEnd = stringEnd(text, i);
    const key = decodeKey(text.slice(i, keyEnd));
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, start);
    if (members.has(key)) return null;
    members.set(key, { keyStart: i, start, end });
    i = skipSpace(text, end);
    if (text.charCodeAt(i) === COMMA) i = skipSpace(text, i + 1);
  }
  return members;
}

/** The value that a path of keys leads to, or null. */
export function spanOf(text: string, path: readonly string[]): Span | null {
  let found: Span = { start: 0, end: text.length };
  for (const key of path) {
    const span = membersOf(text, found.start)?.get(key);
    if (span === undefined) return null;
    found = span;
  }
  return found;
}

/**
 * The text with one value replaced by another (JSON text) and every other character as it was; the same text where
 * the path leads nowhere.
 */
export function replaceAt(text: string, path: readonly string[], value: string): string {
  const span = spanOf(text, path);
  return span === null ? text : text.slice(0, span.start) + value + text.slice(span.end);
}

/** The text without the member that a path of keys leads to, and without its comma. */
export function removeAt(text: string, path: readonly string[]): string {
  const object = spanOf(text, path.slice(0, -1));
  const members = [...((object && membersOf(text, object.start)) ?? [])];
  const at = members.findIndex(([key]) => key === path.at(-1));
  if (at === -1) return text;
  const [, { keyStart, end }] = members[at]!;
  const before = members[at - 1]?.[1];
  const after = members[at + 1]?.[1];
  if (before) return text.slice(0, before.end) + text.slice(end);
  return text.slice(0, keyStart) + text.slice(after?.keyStart ?? end);
}

function skipSpace(text: string, from: number): number {
  let i = from;
  for (;;) {
    const code = text.charCodeAt(i);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return i;
    i++;
  }
}

/** Behind the quote that closes the string whose opening quote is at `start`. */
function stringEnd(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  for (;;) {
    let before = quote - 1;
    // A run of backslashes ends at the quote before it at the latest: each is looked at once.
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((quote - 1 - before) % 2 === 0) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
}

function decodeKey(written: string): string {
  return written.includes('\\') ? (JSON.parse(written) as string) : written.slice(1, -1);
}

/** Behind the value at `start`. What is inside is passed over by counting brackets. */
function valueEnd(text: string, start: number): number {
  let depth = 0;
  let i = start;
  for (;;) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = stringEnd(text, i) - 1;
        if (depth === 0) return i + 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        // Of the object around a number or a word.
        if (depth === 0) return i;
        if (--depth === 0) return i + 1;
        break;
      case COMMA:
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        if (depth === 0) return i;
    }
    i++;
  }
}
