import { elementsOf, isObject, type JsonObject, membersOf, RawJsonError, removeAt, type Span, splice } from '#wire';
import type { LeftOut } from '#catalog';
import { type ListForm, prompt, resource, resourceTemplate, tool } from './definitions.ts';
import { expected, members, readable, type Readable, repaired, type Shape, text } from './shape.ts';

export { FORMS, type ListForm } from './definitions.ts';

/** The lists of a server: by method, the member of the result that has the list, and the key of an element. */
export const LISTS = {
  'tools/list': { kind: 'tool', member: 'tools', key: 'name' },
  'resources/list': { kind: 'resource', member: 'resources', key: 'uri' },
  'resources/templates/list': { kind: 'resource_template', member: 'resourceTemplates', key: 'uriTemplate' },
  'prompts/list': { kind: 'prompt', member: 'prompts', key: 'name' },
} as const;
export type ListMethod = keyof typeof LISTS;

export const isListMethod = (method: string): method is ListMethod => Object.hasOwn(LISTS, method);

const ITEMS: Readonly<Record<ListMethod, Readonly<Record<ListForm, Shape>>>> = {
  'tools/list': { modern: tool('modern'), legacy: tool('legacy') },
  'resources/list': { modern: resource, legacy: resource },
  'resources/templates/list': { modern: resourceTemplate, legacy: resourceTemplate },
  'prompts/list': { modern: prompt, legacy: prompt },
};

const LEFT_NAME_MAX = 256;

export const leftOut = (method: ListMethod, key: string | null, fault: string): LeftOut => ({
  kind: LISTS[method].kind,
  name: key === null ? null : Buffer.from(key.slice(0, LEFT_NAME_MAX)).toString(),
  fault,
});

/** An element of a list (JSON text) in the form that clients read. `value`: the same, parsed. */
export function readableItem(method: ListMethod, form: ListForm, written: string, value: unknown): Readable {
  try {
    // Readers differ in which of two values they take, so nobody knows which tool this is.
    if (isObject(value)) membersOf(written);
  } catch (error) {
    if (error instanceof RawJsonError) return { fault: TWICE };
    throw error;
  }
  return readable(written, value, ITEMS[method][form]);
}

const TWICE = 'one of its members is there twice';

/** The name or the URI of an element; null without one. */
export function keyOf(method: ListMethod, value: unknown): string | null {
  const key = isObject(value) ? value[LISTS[method].key] : null;
  return typeof key === 'string' ? key : null;
}

/** A member of a page that nobody can read is left out, because the elements beside it are good. */
const orNone =
  (shape: Shape): Shape =>
  (value, at) =>
    shape(value, null) || repaired(at, () => null);

const isMilliseconds = expected('milliseconds', (value) => Number.isSafeInteger(value) && (value as number) >= 0);
const isScope = expected('a scope', (value) => value === 'public' || value === 'private');
const orDefault =
  (shape: Shape, otherwise: string): Shape =>
  (value, at) =>
    shape(value, null) || repaired(at, () => otherwise);

/** Members with which a modern server says how long its answer is valid. Without them clients read no answer. */
export const cacheMembers = { ttlMs: orDefault(isMilliseconds, '0'), cacheScope: orDefault(isScope, '"private"') };
export const completeType = { resultType: orDefault(text, '"complete"') };

/**
 * Whether a server's cursor leads on. An empty one, and the one that was sent, would lead to the same page without end;
 * so would one of `endless`, which the gateway has tried.
 */
export const leadsOn = (cursor: unknown, sent: unknown, endless?: ReadonlySet<string>): cursor is string =>
  typeof cursor === 'string' && cursor !== '' && cursor !== sent && endless?.has(cursor) !== true;

const ofPage = { _meta: orNone(expected('an object', isObject)) };
const PAGE: Readonly<Record<ListForm, Shape>> = {
  modern: members({ ...cacheMembers, ...completeType }, ofPage),
  legacy: members({}, ofPage),
};

/**
 * The result (JSON text) of a request for a list, in the form that clients read. An element that nobody can read, the
 * second of two with one name, and one whose key `admits` refuses, is left out. So is a cursor that does not
 * lead on from `sent`, the cursor of the request. Throws RawJsonError if a member is there twice.
 */
export function readableList(method: ListMethod, form: ListForm, written: string, options?: ListOptions): Readable {
  const work = listInTurns(method, form, written, options);
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** As readableList, for a list that may be large: yields between pieces of work. */
export function* listInTurns(
  method: ListMethod,
  form: ListForm,
  written: string,
  { admits, sent, endless }: ListOptions = {},
): Generator<void, Readable, undefined> {
  const value = JSON.parse(written) as JsonObject;
  const { member } = LISTS[method];
  const items = value[member];
  if (!Array.isArray(items)) return { fault: `${member} must be a list` };
  yield;
  const { nextCursor } = value;
  const isGood = nextCursor === undefined || leadsOn(nextCursor, sent, endless);
  const page = readable(isGood ? written : removeAt(written, ['nextCursor']), value, PAGE[form]);
  if ('fault' in page) return page;
  yield;
  let isShorter = false;
  const seen = new Set<string>();
  const { start, end } = membersOf(page.text).get(member)!;
  const spans = elementsOf(page.text, start);
  let changed = false;
  const readableItems: (Span & { readonly text: string })[] = [];
  for (const [index, span] of spans.entries()) {
    if (index % ITEMS_AT_ONCE === 0) yield;
    const item = page.text.slice(span.start, span.end);
    const key = keyOf(method, items[index]);
    if (admits?.(key) === false) {
      isShorter = changed = true;
      continue;
    }
    const read = key !== null && seen.has(key) ? DOUBLE : readableItem(method, form, item, items[index]);
    if ('fault' in read) isShorter = true;
    else if (key !== null) seen.add(key);
    changed ||= !('text' in read) || read.text !== item;
    if ('text' in read) readableItems.push({ ...span, text: read.text });
  }
  if (!changed) return page;
  yield;
  // White space between elements stays where all of them do.
  const edits = !isShorter
    ? readableItems
    : [{ start, end, text: `[${readableItems.map(({ text: one }) => one).join()}]` }];
  return { text: splice(page.text, edits) };
}

export interface ListOptions {
  readonly admits?: Admits | undefined;
  readonly sent?: unknown;
  readonly endless?: ReadonlySet<string> | undefined;
}

/** Whether a caller may use the element with this key; null for an element without one. */
export type Admits = (key: string | null) => boolean;

/** Elements that are read in one turn of the event loop: a few milliseconds. */
const ITEMS_AT_ONCE = 1_000;

export const SAME_NAME = 'another one before it has the same name';
const DOUBLE: Readable = { fault: SAME_NAME };
