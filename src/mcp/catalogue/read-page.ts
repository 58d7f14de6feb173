import { elementsOf, isObject, membersOf, RawJsonError } from '#wire';
import type { ListedItem } from './listing.ts';

/** The lists of a server: by method, the member of the result that has the list, and the key of an element. */
export const LISTS = {
  'tools/list': { member: 'tools', key: 'name' },
  'resources/list': { member: 'resources', key: 'uri' },
  'resources/templates/list': { member: 'resourceTemplates', key: 'uriTemplate' },
  'prompts/list': { member: 'prompts', key: 'name' },
} as const;
export type ListMethod = keyof typeof LISTS;

export interface Page {
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
export function readPage(text: string, method: ListMethod, { keyMax, itemMax, itemsMax }: PageLimits): Page {
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
