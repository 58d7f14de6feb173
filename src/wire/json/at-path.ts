import { membersOf, RawJsonError, removeMember, splice, type Span } from './raw-json.ts';

/**
 * The span of the value at a path of keys; null if the path does not exist or an object on the way has a duplicate key.
 * `text` must be valid JSON.
 */
export function spanAt(text: string, path: readonly string[]): Span | null {
  let found: Span = { start: 0, end: text.length };
  try {
    for (const key of path) {
      const member = membersOf(text, found.start).get(key);
      if (member === undefined) return null;
      found = member;
    }
  } catch (error) {
    if (error instanceof RawJsonError) return null;
    throw error;
  }
  return found;
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
