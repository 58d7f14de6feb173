import { isObject, type JsonObject, parseExact } from '#wire';

/** Returns the new value of a member; `undefined` drops the member. */
export type Edit = (value: unknown) => unknown;

/** Edits by the name of a member: its new value, or its new name and new value. */
export type Edits = Readonly<Record<string, Edit | readonly [name: string, edit?: Edit]>>;

/**
 * Changes, renames or drops members of an object. Every other member stays, and the order stays. A member that already
 * has the new name of a renamed member is dropped: nothing checked it in the source version, so it must not get a
 * meaning in the target.
 */
export function editMembers(object: JsonObject, edits: Edits): Record<string, unknown> {
  const newNames = new Set(Object.values(edits).flatMap((edit) => (typeof edit === 'function' ? [] : [edit[0]])));
  const members: [name: string, value: unknown][] = [];
  for (const [name, value] of Object.entries(object)) {
    const edit = Object.hasOwn(edits, name) ? edits[name] : undefined;
    if (edit === undefined && newNames.has(name)) continue;
    const [newName, change] = typeof edit === 'function' ? [name, edit] : (edit ?? [name]);
    const newValue = change === undefined ? value : change(value);
    if (newValue !== undefined) members.push([newName, newValue]);
  }
  return Object.fromEntries(members);
}

export const drop: Edit = () => undefined;

export const each =
  (edit: Edit): Edit =>
  (value) =>
    Array.isArray(value) ? value.map((one) => edit(one)) : value;

export const onObject =
  (edit: (value: JsonObject) => unknown): Edit =>
  (value) =>
    isObject(value) ? edit(value) : value;

/** Whether a member is present. ProtoJSON reads null as an absent member. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null;

/**
 * A double may not hold a number with so many digits or with so large an exponent. The digits may also be part of a
 * text. What comes before an exponent is looked at too, because UUIDs often have a part such as `1e400`.
 */
const LONG_NUMBER = /\d{16}|[[:,\s]-?[\d.]+[eE]\+?\d{3}/;

/**
 * A value that is translated and then written again. `value` is the parsed `text`. Integers that a double cannot hold
 * are written with all their digits.
 */
export function exactValue(text: string, value: unknown): unknown {
  if (!LONG_NUMBER.test(text)) return value;
  try {
    return parseExact(text);
  } catch {
    // It has more long numbers than are read exactly.
    return value;
  }
}

export const exactly = (text: string): unknown => exactValue(text, JSON.parse(text));
