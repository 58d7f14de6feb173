import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  decodeKey,
  duplicate,
  keyEnd,
  type JsonMember,
  type Members,
  OPEN_BRACE,
  OPEN_BRACKET,
  RawJsonError,
  skipSpace,
  type Span,
  unexpected,
  valueEnd,
} from './json-scan.ts';
import { isObject, type JsonObject } from './json-guard.ts';

export interface Edit extends Span {
  readonly text: string;
}

/**
 * The members of the object that begins at `at`, after white space. `text` must be valid JSON. For other text it throws
 * RawJsonError or returns wrong spans, because values are skipped and not checked. It also throws for a duplicate key,
 * however the key is escaped, because parsers differ in which value they take. Linear time, no recursion.
 */
export function membersOf(text: string, at = 0): Members {
  return read(text, at, NOWHERE, 0).members;
}

/** Like membersOf, and also throws for duplicate keys in the objects along `path`, in the same pass. */
export function membersAlong(text: string, path: readonly string[]): Members {
  return read(text, 0, path, 0).members;
}

const NOWHERE: readonly string[] = [];

function read(
  text: string,
  at: number,
  path: readonly string[],
  depth: number,
): { readonly members: Members; readonly end: number } {
  const members = new Map<string, JsonMember>();
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACE) throw unexpected(text, i, 'an object');
  i = skipSpace(text, i + 1);
  if (text.charCodeAt(i) === CLOSE_BRACE) return { members, end: i + 1 };
  for (;;) {
    const keyStart = i;
    const behindKey = keyEnd(text, i);
    const key = decodeKey(text, keyStart, behindKey);
    i = skipSpace(text, behindKey);
    if (text.charCodeAt(i) !== COLON) throw unexpected(text, i, 'a colon');
    const start = skipSpace(text, i + 1);
    const along = key === path[depth] && text.charCodeAt(start) === OPEN_BRACE;
    const end = along ? read(text, start, path, depth + 1).end : valueEnd(text, start);
    if (members.has(key)) throw duplicate(key, keyStart);
    members.set(key, { keyStart, start, end });
    i = skipSpace(text, end);
    const next = text.charCodeAt(i);
    if (next === CLOSE_BRACE) return { members, end: i + 1 };
    if (next !== COMMA) throw unexpected(text, i, 'a comma or the end of the object');
    i = skipSpace(text, i + 1);
  }
}

/**
 * Like membersAlong, for text that JSON.parse has read as `value`. Only duplicate keys are left to check, and the
 * number of keys shows them. So the positions of members inside the objects along `path` are not recorded.
 */
export function membersOfParsed(text: string, value: JsonObject, path: readonly string[]): Members {
  const members = new Map<string, JsonMember>();
  let i = skipSpace(text, skipSpace(text, 0) + 1);
  let keys = 0;
  while (text.charCodeAt(i) !== CLOSE_BRACE) {
    const keyStart = i;
    const behindKey = keyEnd(text, i);
    const start = skipSpace(text, skipSpace(text, behindKey) + 1);
    const key = decodeKey(text, keyStart, behindKey);
    const inside = key === path[0] && text.charCodeAt(start) === OPEN_BRACE ? value[key] : null;
    const end = isObject(inside) ? parsedEnd(text, start, inside, path, 1) : valueEnd(text, start);
    if (end === TWICE) break;
    members.set(key, { keyStart, start, end });
    keys++;
    i = behindComma(text, end);
  }
  // In case of a duplicate key, membersAlong throws an error that names the key.
  return members.size === keys && text.charCodeAt(i) === CLOSE_BRACE ? members : membersAlong(text, path);
}

const TWICE = -1;

/**
 * The index after the object at `at`, which JSON.parse has read as `value`. TWICE if it, or an object along `path`
 * inside it, has a duplicate key.
 */
function parsedEnd(text: string, at: number, value: JsonObject, path: readonly string[], depth: number): number {
  const next = path[depth];
  const inside = next === undefined ? null : value[next];
  let i = skipSpace(text, at + 1);
  let keys = 0;
  while (text.charCodeAt(i) !== CLOSE_BRACE) {
    const behindKey = keyEnd(text, i);
    const start = skipSpace(text, skipSpace(text, behindKey) + 1);
    const end =
      isObject(inside) && text.charCodeAt(start) === OPEN_BRACE && isKey(text, i, behindKey, next!)
        ? parsedEnd(text, start, inside, path, depth + 1)
        : valueEnd(text, start);
    if (end === TWICE) return TWICE;
    keys++;
    i = behindComma(text, end);
  }
  return keys === Object.keys(value).length ? i + 1 : TWICE;
}

/** The index of the next key, or of the brace that closes the object. */
function behindComma(text: string, end: number): number {
  const i = skipSpace(text, end);
  return text.charCodeAt(i) === COMMA ? skipSpace(text, i + 1) : i;
}

/** True if the text from `start` to `end` is the given key. An escaped spelling is always longer than the key. */
function isKey(text: string, start: number, end: number, key: string): boolean {
  const length = end - start - 2;
  if (length === key.length) return text.startsWith(key, start + 1);
  return length > key.length && decodeKey(text, start, end) === key;
}

/**
 * The members of the object that begins `text`, up to the first fault or the end of the text. The values are JSON text.
 * The value at the fault is empty. Of duplicate keys the last counts, as in JSON.parse. At most `countMax` are read.
 */
export function readableMembers(text: string, countMax = Infinity): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  let remaining = countMax;
  let i = skipSpace(text, 0);
  if (text.charCodeAt(i) !== OPEN_BRACE) return members;
  try {
    do {
      const keyStart = skipSpace(text, i + 1);
      const behindKey = keyEnd(text, keyStart);
      const key = decodeKey(text, keyStart, behindKey);
      const start = skipSpace(text, skipSpace(text, behindKey) + 1);
      members.set(key, '');
      const end = valueEnd(text, start);
      i = skipSpace(text, end);
      // A number at the end of the text may go on behind it.
      if (i < text.length) members.set(key, text.slice(start, end));
    } while (--remaining > 0 && text.charCodeAt(i) === COMMA);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
  }
  return members;
}

/**
 * The elements of the array that begins `text`, as JSON text, up to the first fault or the end of the text. The last
 * one may be incomplete. Behind `countMax` elements, one more has all that follows, without its comma. Empty if `text`
 * does not begin an array.
 */
export function readableElements(text: string, countMax = Infinity): readonly string[] {
  const elements: string[] = [];
  let i = skipSpace(text, 0);
  if (text.charCodeAt(i) !== OPEN_BRACKET || text.charCodeAt(skipSpace(text, i + 1)) === CLOSE_BRACKET) return elements;
  try {
    do {
      i = skipSpace(text, i + 1);
      if (elements.length === countMax) {
        elements.push(text.slice(i));
        break;
      }
      const end = valueEnd(text, i);
      elements.push(text.slice(i, end));
      i = skipSpace(text, end);
    } while (text.charCodeAt(i) === COMMA);
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    elements.push(text.slice(i));
  }
  return elements;
}

/**
 * The first `countMax` elements of the array that begins at `at`, after white space. Reads and throws as membersOf
 * does.
 */
export function elementsOf(text: string, at: number, countMax = Infinity): readonly Span[] {
  const elements: Span[] = [];
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACKET) throw unexpected(text, i, 'an array');
  i = skipSpace(text, i + 1);
  if (text.charCodeAt(i) === CLOSE_BRACKET) return elements;
  for (;;) {
    const end = valueEnd(text, i);
    elements.push({ start: i, end });
    if (elements.length === countMax) return elements;
    i = skipSpace(text, end);
    const next = text.charCodeAt(i);
    if (next === CLOSE_BRACKET) return elements;
    if (next !== COMMA) throw unexpected(text, i, 'a comma or the end of the array');
    i = skipSpace(text, i + 1);
  }
}

/**
 * Applies edits, which may come in any order. Several insertions at one position keep their order. Throws RawJsonError
 * if two edits overlap.
 */
export function splice(text: string, edits: readonly Edit[]): string {
  const ordered = edits.length > 1 ? edits.toSorted((a, b) => a.start - b.start || a.end - b.end) : edits;
  let result = '';
  let at = 0;
  for (const edit of ordered) {
    if (edit.start < at) throw new RawJsonError(`two edits overlap (at position ${edit.start})`);
    result += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return result + text.slice(at);
}

/**
 * The edit that sets member `key` of the object at `at` to `value` (JSON text). It replaces the value, or adds the
 * member at the end.
 */
export function setMember(text: string, at: number, key: string, value: string): Edit {
  const members = membersOf(text, at);
  const old = members.get(key);
  if (old) return { start: old.start, end: old.end, text: value };
  const written = `${JSON.stringify(key)}:${value}`;
  const last = lastOf(members);
  const place = last ? last.end : skipSpace(text, at) + 1;
  return { start: place, end: place, text: last ? `,${written}` : written };
}

/** The edit that removes a member with its comma; null if there is no such member. */
export function removeMember(text: string, at: number, key: string): Edit | null {
  let before: JsonMember | null = null;
  let target: JsonMember | null = null;
  for (const [name, member] of membersOf(text, at)) {
    if (target)
      return before
        ? { start: before.end, end: target.end, text: '' }
        : { start: target.keyStart, end: member.keyStart, text: '' };
    if (name === key) target = member;
    else before = member;
  }
  return target && { start: before ? before.end : target.keyStart, end: target.end, text: '' };
}

/**
 * One edit that sets (JSON text) or removes (null) several members of the object at `span`. Separate edits could
 * overlap at a comma. Other members keep their position, spelling and white space. New members come last. `members`:
 * those of the object, if they are known.
 */
export function withMembers(
  text: string,
  span: Span,
  change: Readonly<Record<string, string | null>>,
  members = membersOf(text, span.start),
): Edit {
  const changes = new Map(Object.entries(change));
  let body = '';
  let before: JsonMember | null = null;
  for (const [key, member] of members) {
    const value = changes.get(key);
    changes.delete(key);
    if (value !== null) {
      if (body) body += text.slice(before!.end, member.keyStart);
      body +=
        value === undefined
          ? text.slice(member.keyStart, member.end)
          : text.slice(member.keyStart, member.start) + value;
    }
    before = member;
  }
  for (const [key, value] of changes) if (value !== null) body += `${body && ','}${JSON.stringify(key)}:${value}`;
  const [first] = members.values();
  const open = skipSpace(text, span.start) + 1;
  return {
    start: span.start,
    end: span.end,
    text: text.slice(span.start, first?.keyStart ?? open) + body + text.slice(before?.end ?? open, span.end),
  };
}

function lastOf(members: Members): JsonMember | null {
  let last: JsonMember | null = null;
  for (const member of members.values()) last = member;
  return last;
}

/**
 * The span of the value at a path of keys; null if the path does not exist or an object on the way has a duplicate key.
 * `text` must be valid JSON.
 */
export function spanAt(text: string, path: readonly string[]): Span | null {
  let span: Span = { start: 0, end: text.length };
  try {
    for (const key of path) {
      const member = membersOf(text, span.start).get(key);
      if (member === undefined) return null;
      span = member;
    }
  } catch (error) {
    if (error instanceof RawJsonError) return null;
    throw error;
  }
  return span;
}

/** Replaces the value at a path by another one (JSON text). Returns the same text if the path does not exist. */
export function replaceAt(text: string, path: readonly string[], value: string): string {
  const span = spanAt(text, path);
  return span === null ? text : splice(text, [{ start: span.start, end: span.end, text: value }]);
}

/** Removes the member at a path with its comma. Returns the same text if the path does not exist. */
export function removeAt(text: string, path: readonly string[]): string {
  const object = spanAt(text, path.slice(0, -1));
  if (object === null || spanAt(text, path) === null) return text;
  return splice(text, [removeMember(text, object.start, path.at(-1)!)!]);
}
