/** A value that a settings file can hold. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };

/** One value of a settings file. All else in the file is unchanged. */
export interface Setting {
  /** Names from the root of the file to the value. `{ name }` selects the entry of a list that has this `name`. */
  readonly at: readonly (string | { readonly name: string })[];
  /** undefined removes the value. */
  readonly value: Value | undefined;
  /** If the file already has a value there, it stays. */
  readonly keep?: true;
}

/** Reads and changes settings files of one format. */
export interface Format {
  /** The language of a fenced block in Markdown. */
  readonly language: string;
  /** The values of a file; `{}` for an empty text. Throws an Error that says where the text is wrong. */
  parse(text: string): unknown;
  /** The text with the settings. All else is unchanged. */
  change(text: string, settings: readonly Setting[]): string;
}

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree => value !== null && typeof value === 'object' && !Array.isArray(value);

/** The settings that `values` does not have yet. */
export function missing(values: unknown, settings: readonly Setting[]): readonly Setting[] {
  return settings.filter(({ at, value, keep }) => {
    const found = valueAt(values, at);
    return keep ? found === undefined : JSON.stringify(found) !== JSON.stringify(value);
  });
}

/** The value at a path; undefined if the path leads nowhere. */
export const valueAt = (values: unknown, at: Setting['at']): unknown =>
  at.reduce<unknown>((from, step) => childOf(from, step), values);

/**
 * Whether the table or list at a path has nothing in it. The `name` by which a list's entry is found does not count.
 */
export function isEmptyAt(values: unknown, at: Setting['at']): boolean {
  const value = valueAt(values, at);
  if (Array.isArray(value)) return value.length === 0;
  const isEntry = typeof at.at(-1) === 'object';
  return isTree(value) && Object.keys(value).every((name) => isEntry && name === 'name');
}

function childOf(from: unknown, step: Setting['at'][number]): unknown {
  if (typeof step === 'string') return isTree(from) && Object.hasOwn(from, step) ? from[step] : undefined;
  return Array.isArray(from) ? from.find((entry) => isTree(entry) && entry['name'] === step.name) : undefined;
}

/**
 * A copy of `values` with the settings, to compare with a changed file. Throws an Error if the path of a setting leads
 * through a value that is not a table or list.
 */
export function withSettings(values: unknown, settings: readonly Setting[]): unknown {
  const copy = structuredClone(values);
  for (const { at, value } of settings) {
    let place = copy;
    for (const [index, step] of at.slice(0, -1).entries()) {
      const next = childOf(place, step) ?? addChild(place, step, typeof at[index + 1] === 'object' ? [] : {}, at);
      place = next;
    }
    const last = at.at(-1)!;
    if (value !== undefined) addChild(place, last, value, at);
    else if (isTree(place) && typeof last === 'string') delete place[last];
    else if (Array.isArray(place)) place.splice(place.indexOf(childOf(place, last)), 1);
  }
  return copy;
}

function addChild(place: unknown, step: Setting['at'][number], child: unknown, at: Setting['at']): unknown {
  if (typeof step === 'string' && isTree(place)) return (place[step] = child);
  if (typeof step === 'object' && Array.isArray(place)) {
    const entry = { name: step.name, ...(isTree(child) ? child : {}) };
    place.push(entry);
    return entry;
  }
  throw new Error(`${at.map((one) => (typeof one === 'string' ? one : one.name)).join('.')} cannot be set in it`);
}
