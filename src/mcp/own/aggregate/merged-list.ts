import { type ListMethod, LISTS } from '../../catalogue/read-page.ts';
import { toCursor, type Position } from './cursor.ts';
import { renderItem, renderTool } from './render.ts';
import type { ServiceTable } from './tables.ts';

interface MergedPage {
  /** Each item as JSON text. */
  readonly items: readonly string[];
  readonly nextCursor: string | null;
}

/** Most elements of a page. */
const PAGE_SIZE = 200;
/** Most characters of a page. Its first element may be longer. */
const PAGE_CHARACTERS = 1024 * 1024;

/** One page of a list over services, sorted by slug and then by exposed name. `tables` may be in any order. */
export function mergedPage(tables: readonly ServiceTable[], method: ListMethod, after: Position | null): MergedPage {
  const items: string[] = [];
  let characters = 0;
  let last: Position | null = null;
  for (const table of tables.toSorted((a, b) => (a.slug < b.slug ? -1 : 1))) {
    if (after && table.slug < after.slug) continue;
    for (const [key, render] of entriesOf(table, method)) {
      if (after && table.slug === after.slug && key <= after.key) continue;
      const full = items.length === PAGE_SIZE || characters >= PAGE_CHARACTERS;
      if (full) return { items, nextCursor: toCursor(last!) };
      const text = render();
      if (items.length > 0 && characters + text.length > PAGE_CHARACTERS) return { items, nextCursor: toCursor(last!) };
      items.push(text);
      characters += text.length;
      last = { slug: table.slug, key };
    }
  }
  return { items, nextCursor: null };
}

function* entriesOf(table: ServiceTable, method: ListMethod): Generator<readonly [string, () => string]> {
  if (method === 'tools/list')
    for (const [name, tool] of table.tools) yield [name, () => renderTool(table, name, tool)];
  else {
    const { member, key } = LISTS[method];
    for (const [name, item] of table[member]) yield [name, () => renderItem(name, item, key)];
  }
}
