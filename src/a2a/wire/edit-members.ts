import { isObject, type JsonObject } from '#wire';

/** A changed value; `undefined` leaves the member out. */
export type Edit = (value: unknown) => unknown;

/** By the name of a member: its new value, or its new name and new value. */
export type Edits = Readonly<Record<string, Edit | readonly [name: string, edit?: Edit]>>;

/**
 * An object with some of its members changed, renamed or left out. Every other member stays, and all stay in their
 * order. A member that stands there under another one's new name is left out: it meant nothing where it comes from,
 * and must not mean something unchecked where it goes.
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

/** Leaves a member out. */
export const drop: Edit = () => undefined;

/** Changes each element of an array; leaves any other value as it is. */
export const each =
  (edit: Edit): Edit =>
  (value) =>
    Array.isArray(value) ? value.map((one) => edit(one)) : value;

/** Changes an object; leaves any other value as it is. */
export const onObject =
  (edit: (value: JsonObject) => unknown): Edit =>
  (value) =>
    isObject(value) ? edit(value) : value;

/** Whether a member says something. ProtoJSON reads null as a member that is not there. */
export const isSet = (value: unknown): boolean => value !== undefined && value !== null;
