import type { Offer } from '#catalog';
import { elementsOf, isObject, membersOf, RawJsonError } from '#wire';
import type { ServerFacts } from '../request/mcp-request.ts';
import { orAbort } from '../request/waiting.ts';

/** An element of a list. The key is the URI of a resource, the URI template of a template, or the name of a prompt. */
export interface ListedItem {
  readonly key: string;
  /** Unchanged JSON text. It has no duplicate keys. */
  readonly text: string;
}

export interface FetchDeps {
  /** Gets the facts of an offer's server. */
  readonly facts: (offer: Offer, signal: AbortSignal) => Promise<ServerFacts>;
  /**
   * Gets one page of a list for the gateway itself. Resolves to the result as JSON text, or to null if the server does
   * not have the method.
   */
  readonly list: (
    offer: Offer,
    method: ListMethod,
    cursor: string | null,
    signal: AbortSignal,
  ) => Promise<string | null>;
}

export interface FetchLimits {
  /** Most pages of one list. */
  readonly pagesMax: number;
  /** Most elements of one list. */
  readonly itemsMax: number;
  /** Most characters of one element. */
  readonly itemMax: number;
  /** Most characters of all lists together. */
  readonly sizeMax: number;
  /**
   * Milliseconds after which nothing more is waited for except the list of tools. The lists after it share the time
   * that is left.
   */
  readonly othersMs: number;
}

type OtherList = Exclude<ListMethod, 'tools/list'>;

export interface FetchedLists {
  readonly facts: ServerFacts;
  readonly tools: readonly ListedItem[];
  /** null for a list that could not be read. */
  readonly others: Readonly<Record<OtherList, readonly ListedItem[] | null>>;
  /** The reason why one of `others` could not be read; null if all were read. */
  readonly fault: Error | null;
  /** Characters of all lists. */
  readonly size: number;
  readonly truncated: boolean;
}

/** Most characters of a name or a URI. */
const KEY_MAX = 1_024;
/** The lists besides the tools: resources, their templates, and prompts. */
const OTHER_LISTS = 3;

/**
 * Reads all lists of one server, within the limits. Rejects if the server cannot be asked, or does not answer with a
 * list of its tools. The other lists may fail or never come: a server whose prompts cannot be read still has its tools.
 */
export async function fetchLists(
  offer: Offer,
  { facts, list }: FetchDeps,
  limits: FetchLimits,
  signal: AbortSignal,
): Promise<FetchedLists> {
  const until = performance.now() + limits.othersMs;
  const told = await facts(offer, signal);
  let size = 0;
  let truncated = false;

  const readAll = async (method: ListMethod, over: AbortSignal): Promise<readonly ListedItem[]> => {
    const items = new Map<string, ListedItem>();
    const cursors = new Set<string>();
    let cursor: string | null = null;
    for (let page = 0; page < limits.pagesMax; page++) {
      over.throwIfAborted();
      const text: string | null = await orAbort(list(offer, method, cursor, over), over);
      if (text === null) return [];
      const read = readPage(text, method, { keyMax: KEY_MAX, itemMax: limits.itemMax, itemsMax: limits.itemsMax });
      truncated ||= read.skipped;
      for (const item of read.items) {
        if (items.has(item.key)) continue;
        if (items.size >= limits.itemsMax || size + item.text.length > limits.sizeMax) {
          truncated = true;
          return [...items.values()];
        }
        items.set(item.key, item);
        size += item.text.length;
      }
      cursor = read.nextCursor;
      // A server that returns a cursor twice would do so without end.
      if (cursor === null || cursors.has(cursor)) return [...items.values()];
      cursors.add(cursor);
    }
    truncated = true;
    return [...items.values()];
  };

  let fault: Error | null = null;
  let listsLeft = OTHER_LISTS;
  const readOther = async (method: OtherList, capability: string): Promise<readonly ListedItem[] | null> => {
    const ms = Math.max(0, until - performance.now()) / listsLeft--;
    if (!Object.hasOwn(told.capabilities, capability)) return [];
    const sizeBefore = size;
    const late = new AbortController();
    const tooLate = () => late.abort(new Error(`no whole answer to ${method} within ${Math.round(ms)} ms`));
    const timer = setTimeout(tooLate, ms);
    try {
      return await readAll(method, AbortSignal.any([signal, late.signal]));
    } catch (error) {
      signal.throwIfAborted();
      fault ??= error as Error;
      size = sizeBefore;
      return null;
    } finally {
      clearTimeout(timer);
    }
  };

  const tools = await readAll('tools/list', signal);
  const others = {
    'resources/list': await readOther('resources/list', 'resources'),
    'resources/templates/list': await readOther('resources/templates/list', 'resources'),
    'prompts/list': await readOther('prompts/list', 'prompts'),
  };
  return { facts: told, tools, others, fault, size, truncated };
}

/** The lists of a server: by method, the member of the result that has the list, and the key of an element. */
export const LISTS = {
  'tools/list': { member: 'tools', key: 'name' },
  'resources/list': { member: 'resources', key: 'uri' },
  'resources/templates/list': { member: 'resourceTemplates', key: 'uriTemplate' },
  'prompts/list': { member: 'prompts', key: 'name' },
} as const;
export type ListMethod = keyof typeof LISTS;

interface Page {
  readonly items: readonly ListedItem[];
  /**
   * Elements were skipped, because the key is missing or too long, the element is too long, or a member occurs twice.
   */
  readonly skipped: boolean;
  readonly nextCursor: string | null;
}

interface PageLimits {
  /** Most characters of an element's key. */
  readonly keyMax: number;
  /** Most characters of an element. */
  readonly itemMax: number;
  readonly itemsMax: number;
}

/** Reads one page of a list from the JSON text of a result. Throws RawJsonError if the text is not such a list. */
function readPage(text: string, method: ListMethod, { keyMax, itemMax, itemsMax }: PageLimits): Page {
  const { member, key } = LISTS[method];
  const members = membersOf(text);
  const list = members.get(member);
  if (!list) throw new RawJsonError(`the result of ${method} has no ${member}`);
  const items: ListedItem[] = [];
  let skipped = false;
  for (const { start, end } of elementsOf(text, list.start, itemsMax + 1)) {
    if (items.length >= itemsMax) {
      skipped = true;
      break;
    }
    const name = end - start > itemMax ? null : keyOf(text.slice(start, end), key);
    if (name === null || name === '' || name.length > keyMax) skipped = true;
    else items.push({ key: name, text: ownText(text.slice(start, end)) });
  }
  const cursor = members.get('nextCursor');
  const next: unknown = cursor && parse(text.slice(cursor.start, cursor.end));
  return { items, skipped, nextCursor: typeof next === 'string' ? next : null };
}

/** The key of an element: its name or URI. Null if the element is not an object with exactly one such member. */
function keyOf(text: string, key: string): string | null {
  try {
    const value = parse(text);
    // An element with duplicate members is skipped, because readers differ in which value they take.
    membersOf(text);
    const name = isObject(value) ? value[key] : null;
    return typeof name === 'string' ? name : null;
  } catch (error) {
    if (error instanceof RawJsonError) return null;
    throw error;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new RawJsonError('a part of a list is not JSON');
  }
}

/** Copies a text, because a slice would keep the whole text in memory. */
const ownText = (text: string) => Buffer.from(text).toString();
