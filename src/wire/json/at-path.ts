import { membersOf, RawJsonError, removeMember, splice, type Span } from './raw-json.ts';

/**
 * The value that a path of keys leads to. null where the path leads nowhere, and where a key on the way stands
 * twice. The text is one that JSON.parse accepts.
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

/** The text with the value at a path replaced by another (JSON text). The same text where the path leads nowhere. */
export function replaceAt(text: string, path: readonly string[], value: string): string {
  const span = spanAt(text, path);
  return span === null ? text : splice(text, [{ start: span.start, end: span.end, text: value }]);
}

/** The text without the member at a path and without its comma. The same text where the path leads nowhere. */
export function removeAt(text: string, path: readonly string[]): string {
  const object = spanAt(text, path.slice(0, -1));
  if (object === null || spanAt(text, path) === null) return text;
  return splice(text, [removeMember(text, object.start, path.at(-1)!)!]);
}
