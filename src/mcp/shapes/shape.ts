import { elementsOf, isObject, type JsonObject, membersOf, RawJsonError, type Span, splice, withMembers } from '#wire';

type Path = readonly (string | number)[];

/** A value that makes the whole unreadable: where it is, and what it must be. */
interface Fault {
  readonly path: Path;
  readonly must: string;
}

/**
 * A change that makes a value readable and loses nothing. `change` gets the JSON text of the member at `path`, or null
 * without one, and returns its new text, or null to remove it.
 */
interface Repair {
  readonly path: Path;
  readonly change: (written: string | null) => string | null;
}

/** The path of a value, with the faults and repairs that were found on the way. */
interface ValuePlace {
  readonly path: Path;
  readonly notes: { readonly repairs: Repair[]; fault: Fault | null };
}

/**
 * Whether clients can read a value. Without a place it only answers, and allocates nothing: most values are right. With
 * a place it also notes how the value becomes readable, or why it cannot, and answers true if repairs are enough.
 */
export type Shape = (value: unknown, at: ValuePlace | null) => boolean;

const inside = (at: ValuePlace | null, key: string | number): ValuePlace | null =>
  at && { path: [...at.path, key], notes: at.notes };

function wrong(at: ValuePlace | null, must: string): false {
  if (at !== null) at.notes.fault ??= { path: at.path, must };
  return false;
}

/** Notes a repair of the value at `at`. Without a place there is no repair. */
export function repaired(at: ValuePlace | null, change: Repair['change']): boolean {
  at?.notes.repairs.push({ path: at.path, change });
  return at !== null;
}

/** `must`: words that follow the name of a member, after "must be". */
export const expected =
  (must: string, test: (value: unknown) => boolean): Shape =>
  (value, at) =>
    test(value) || wrong(at, must);

export const text = expected('a string', (value) => typeof value === 'string');
export const number = expected('a number', Number.isFinite);
export const integer = expected('an integer', Number.isSafeInteger);
export const boolean = expected('true or false', (value) => typeof value === 'boolean');
export const object = expected('an object', isObject);
export const anything: Shape = () => true;
/** Anything but null. A null in an optional member is then left out. */
export const present = expected('left out', (value) => value !== null);

export const oneOf = (...words: readonly string[]): Shape =>
  expected(words.map((word) => JSON.stringify(word)).join(' or '), (value) => words.includes(value as string));

export const list =
  (item: Shape, most = Infinity): Shape =>
  (value, at) => {
    if (!Array.isArray(value)) return wrong(at, 'a list');
    if (value.length > most) return wrong(at, `a list of at most ${most}`);
    for (let i = 0; i < value.length; i++) if (!item(value[i], inside(at, i))) return false;
    return true;
  };

export const record =
  (inner: Shape): Shape =>
  (value, at) => {
    if (!isObject(value)) return wrong(at, 'an object');
    for (const key of Object.keys(value)) if (!inner(value[key], inside(at, key))) return false;
    return true;
  };

/** A member that is set to `otherwise` (JSON text) if it is missing or null. */
export const orElse =
  (shape: Shape, otherwise: string): Shape =>
  (value, at) =>
    value === undefined || value === null ? repaired(at, () => otherwise) : shape(value, at);

type Shapes = Readonly<Record<string, Shape>>;

/**
 * An object with these members and any others. An optional member may be missing, and a null in it is left out if its
 * shape does not take null.
 */
export function members(required: Shapes, optional: Shapes = {}): Shape {
  const needed = Object.entries(required);
  const others = Object.entries(optional);
  return (value, at) => {
    if (!isObject(value)) return wrong(at, 'an object');
    for (const [key, shape] of needed) if (!shape(value[key], inside(at, key))) return false;
    for (const [key, shape] of others) {
      const member = value[key];
      if (member === undefined || shape(member, null)) continue;
      if (at === null) return false;
      if (member === null) repaired(inside(at, key), () => null);
      else if (!shape(member, inside(at, key))) return false;
    }
    return true;
  };
}

/** An object whose member `key` decides which of the shapes it has. */
export const byMember =
  (key: string, shapes: Shapes): Shape =>
  (value, at) => {
    if (!isObject(value)) return wrong(at, 'an object');
    const name = value[key];
    const shape = typeof name === 'string' && Object.hasOwn(shapes, name) ? shapes[name]! : null;
    return shape === null ? wrong(inside(at, key), Object.keys(shapes).map(quoted).join(' or ')) : shape(value, at);
  };

const quoted = (word: string) => JSON.stringify(word);

/** The JSON text of a value in a form that clients can read, or the reason why it has no such form. */
export type Readable = { readonly text: string } | { readonly fault: string };
type ReadableValue = { readonly text: string; readonly value: unknown } | { readonly fault: string };

/**
 * Makes a value readable. `written`: its JSON text; `value`: the same, parsed. The same text and value if it is
 * readable as it is; else only the members that are repaired change. It may be large, so it is not parsed again for a
 * few of them.
 */
export function readable(written: string, value: unknown, shape: Shape): ReadableValue {
  if (shape(value, null)) return { text: written, value };
  const notes: ValuePlace['notes'] = { repairs: [], fault: null };
  if (!shape(value, { path: [], notes })) return { fault: wordsOf(notes.fault!) };
  try {
    const changes: Change[] = [];
    const noted = notes.repairs.map(({ path, change }) => ({
      path,
      change(before: string | null) {
        const text = change(before);
        changes.push({ path, text });
        return text;
      },
    }));
    const text = rewritten(written, { start: 0, end: written.length }, noted);
    return { text, value: changes.length > CHANGES_MAX ? JSON.parse(text) : changed(value, changes) };
  } catch (error) {
    if (!(error instanceof RawJsonError)) throw error;
    return { fault: 'a member must not occur twice' };
  }
}

/** With more, it takes longer to change the value than to parse its text. */
const CHANGES_MAX = 20;

/** The new text of the member at a path; null if it is removed. */
interface Change {
  readonly path: Path;
  readonly text: string | null;
}

/** A copy of the value with these changes. What is not changed is shared with it. */
function changed(value: unknown, changes: readonly Change[]): unknown {
  const copies = new Set<unknown>();
  const copyOf = <T>(holder: T): T => {
    if (copies.has(holder)) return holder;
    const copy = (Array.isArray(holder) ? holder.slice() : { ...holder }) as T;
    copies.add(copy);
    return copy;
  };
  const root = { value };
  for (const { path, text } of changes) {
    let holder: object = root;
    let key: string | number = 'value';
    for (const next of path) {
      const inner = copyOf((holder as JsonObject)[key]) as object;
      put(holder, key, inner);
      [holder, key] = [inner, next];
    }
    const isMember = holder !== root && !Array.isArray(holder);
    if (text === null && isMember) delete (holder as Record<string | number, unknown>)[key];
    else put(holder, key, text === null ? null : JSON.parse(text));
  }
  return root.value;
}

/** A provider may have chosen the key, such as `__proto__`. */
const put = (holder: object, key: string | number, value: unknown) =>
  Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });

/** The text of the value at `span`, with the repairs, whose paths begin there. */
function rewritten(written: string, span: Span, repairs: readonly Repair[]): string {
  const here = repairs.find(({ path }) => path.length === 0);
  if (here) return here.change(written.slice(span.start, span.end)) ?? 'null';
  const byKey = Map.groupBy(repairs, ({ path }) => path[0]!);
  const next = (inner: readonly Repair[]) => inner.map(({ path, change }) => ({ path: path.slice(1), change }));
  if (written[span.start] === '[') {
    const elements = elementsOf(written, span.start);
    const edits = [...byKey].map(([index, own]) => {
      const element = elements[index as number]!;
      return { ...element, text: rewritten(written, element, next(own)) };
    });
    return splice(written, edits).slice(span.start, span.end + lengthened(edits));
  }
  const known = membersOf(written, span.start);
  const change: Record<string, string | null> = {};
  for (const [key, own] of byKey) {
    const member = known.get(key as string);
    const end = own.find(({ path }) => path.length === 1);
    change[key] = end
      ? end.change(member ? written.slice(member.start, member.end) : null)
      : rewritten(written, member!, next(own));
  }
  return withMembers(written, span, change, known).text;
}

const lengthened = (edits: readonly (Span & { readonly text: string })[]): number =>
  edits.reduce((sum, { start, end, text: changed }) => sum + changed.length - (end - start), 0);

/** Most characters of a path in words, because a provider chose its names. */
const PATH_MAX = 128;

function wordsOf({ path, must }: Fault): string {
  const name = path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : i === 0 ? key : `.${key}`))
    .join('')
    .slice(0, PATH_MAX);
  return name === '' ? `it must be ${must}` : `${name} must be ${must}`;
}
