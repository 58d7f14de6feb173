import type { LeftOut, Offer } from '#catalog';
import { createPace, elementsOf, membersOf, ownTurn, RawJsonError } from '#wire';
import type { ServerFacts } from '../request/mcp-request.ts';
import { orAbort } from '../request/waiting.ts';
import {
  FORMS,
  type ListForm,
  keyOf,
  leadsOn,
  leftOut,
  type ListMethod,
  LISTS,
  readableItem,
  SAME_NAME,
} from '../shapes/lists.ts';

/** An element of a list. The key is the URI of a resource, the URI template of a template, or the name of a prompt. */
export interface ListedItem {
  readonly key: string;
  /** JSON text as the server wrote it. */
  readonly text: string;
  /** The text that clients read, by how they speak; null if they cannot read it. At least one is there. */
  readonly texts: ItemTexts;
}

/** An element as clients read it. It has no duplicate keys. */
export type ItemTexts = Readonly<Record<ListForm, string | null>>;

export interface FetchDeps {
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
  readonly pagesMax: number;
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
  readonly others: Readonly<Record<OtherList, readonly ListedItem[] | null>>;
  readonly fault: Error | null;
  /** The elements that clients cannot read. They are not in the lists. At most LEFT_OUT_MAX. */
  readonly leftOut: readonly LeftOut[];
  /** Characters of all lists. */
  readonly size: number;
  /** There are more elements, or larger ones, than the limits allow. */
  readonly truncated: boolean;
  /** Cursors of lists that never end, whose pages hold nothing new. */
  readonly endless: ReadonlySet<string>;
}

const LEFT_OUT_MAX = 100;
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
  const server = await facts(offer, signal);
  const broken: LeftOut[] = [];
  const leaveOut = (one: LeftOut) => void (broken.length < LEFT_OUT_MAX && broken.push(one));
  let size = 0;
  let truncated = false;
  const endless = new Set<string>();

  const readAll = async (method: ListMethod, over: AbortSignal): Promise<readonly ListedItem[]> => {
    const items = new Map<string, ListedItem>();
    const cursors = new Set<string>();
    let cursor: string | null = null;
    for (let page = 0; page < limits.pagesMax; page++) {
      over.throwIfAborted();
      const text: string | null = await orAbort(list(offer, method, cursor, over), over);
      if (text === null) return [];
      const read = await readPage(text, method, limits);
      truncated ||= read.truncated;
      read.leftOut.forEach(leaveOut);
      const before = items.size;
      for (const item of read.items) {
        if (items.has(item.key)) {
          leaveOut(leftOut(method, item.key, SAME_NAME));
          continue;
        }
        if (items.size >= limits.itemsMax || size + item.text.length > limits.sizeMax) {
          truncated = true;
          return [...items.values()];
        }
        items.set(item.key, item);
        size += item.text.length;
      }
      // A server that returns a cursor twice would do so without end.
      const { nextCursor } = read;
      const isOver = !leadsOn(nextCursor, cursor) || cursors.has(nextCursor);
      if (isOver && nextCursor !== null && cursor !== null && items.size === before) endless.add(cursor);
      if (isOver) return [...items.values()];
      cursors.add((cursor = nextCursor));
    }
    truncated = true;
    return [...items.values()];
  };

  let fault: Error | null = null;
  let listsLeft = OTHER_LISTS;
  const readOther = async (method: OtherList, capability: string): Promise<readonly ListedItem[] | null> => {
    const ms = Math.max(0, until - performance.now()) / listsLeft--;
    if (!Object.hasOwn(server.capabilities, capability)) return [];
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
  return { facts: server, tools, others, leftOut: broken, fault, size, truncated, endless };
}

interface ListPage {
  readonly items: readonly ListedItem[];
  readonly leftOut: readonly LeftOut[];
  readonly truncated: boolean;
  readonly nextCursor: string | null;
}

/** Reads one page of a list from the JSON text of a result. Rejects with RawJsonError if it is not such a list. */
async function readPage(
  text: string,
  method: ListMethod,
  { itemMax, itemsMax }: Pick<FetchLimits, 'itemMax' | 'itemsMax'>,
): Promise<ListPage> {
  const { member } = LISTS[method];
  if (text.length > CHARACTERS_PER_TURN) await ownTurn();
  const members = membersOf(text);
  const list = members.get(member);
  if (!list) throw new RawJsonError(`the result of ${method} has no ${member}`);
  const items: ListedItem[] = [];
  const broken: LeftOut[] = [];
  const spans = elementsOf(text, list.start, itemsMax + 1);
  let truncated = spans.length > itemsMax;
  const pace = createPace(CHARACTERS_PER_TURN);
  for (const { start, end } of spans.slice(0, itemsMax)) {
    await pace(end - start);
    if (end - start > itemMax) {
      truncated = true;
      const fault = `it has ${end - start} characters, more than the ${itemMax} that the gateway keeps of one`;
      broken.push(leftOut(method, null, fault));
      continue;
    }
    const read = readElement(text.slice(start, end), method);
    if ('fault' in read) broken.push(read);
    else items.push(read);
  }
  const cursor = members.get('nextCursor');
  const next: unknown = cursor && parse(text.slice(cursor.start, cursor.end));
  return { items, leftOut: broken, truncated, nextCursor: leadsOn(next, null) ? next : null };
}

/** Characters of elements that are read in one turn of the event loop. Each is parsed, checked and written twice. */
export const CHARACTERS_PER_TURN = 128 * 1024;

/** Reads an element for all clients. It is left out if none of them can read it. */
function readElement(text: string, method: ListMethod): ListedItem | LeftOut {
  const value = parse(text);
  const key = keyOf(method, value);
  const written = ownText(text);
  const texts: Record<ListForm, string | null> = { modern: null, legacy: null };
  let fault = '';
  for (const form of FORMS) {
    const read = readableItem(method, form, written, value);
    if ('text' in read) texts[form] = read.text;
    else fault = read.fault;
  }
  const nobody = FORMS.every((form) => texts[form] === null);
  return nobody || key === null ? leftOut(method, key, fault) : { key, text: written, texts };
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
