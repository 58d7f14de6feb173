import { createPace, membersOf, splice, withMembers } from '#wire';
import { viewToolCallPrice } from '#catalog';
import { type ListForm, type ListMethod, LISTS } from '../../shapes/lists.ts';
import { type Scope, type ServiceTable, type Tables, WORK } from './tables.ts';
import { writeMeta } from '../../catalogue/decorate.ts';
import type { ServiceTool } from '../../catalogue/tool-catalogue.ts';
import { type IsStranger, shortTool, shownIn } from './strangers.ts';
import { createUriEdits } from './uri-edits.ts';

interface MergedPage {
  /** Each item as JSON text. */
  readonly items: readonly string[];
  readonly nextCursor: string | null;
}

const PAGE_SIZE = 200;
/** Most characters of a page. Its first element may be longer. */
const PAGE_CHARACTERS = 1024 * 1024;

/**
 * One page of a list over services, with what the caller may call, sorted by slug and then by exposed name. `services`
 * may be in any order. Names are made for the services up to the end of the page, in turns.
 */
export async function mergedPage(
  scope: Pick<Scope, 'services' | 'access' | 'names'>,
  tables: Pick<Tables, 'tableOf' | 'slug'>,
  { method, form, after, isStranger }: PageOptions,
): Promise<MergedPage> {
  const pace = createPace(WORK.turn);
  const items: string[] = [];
  let characters = 0;
  let last: Position | null = null;
  const kind = LISTS[method].member;
  const bySlug = scope.services.map((service) => [tables.slug(service), service] as const);
  for (const [slug, service] of bySlug.sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (after && slug < after.slug) continue;
    await pace(WORK.service);
    const table = tables.tableOf(service);
    if (table === null) continue;
    await pace(WORK.name * table.work(kind));
    for (const [key, render] of entriesOf(table, method, form, scope, isStranger)) {
      if (after && slug === after.slug && key <= after.key) continue;
      const full = items.length === PAGE_SIZE || characters >= PAGE_CHARACTERS;
      if (full) return { items, nextCursor: toCursor(last!) };
      const text = render();
      if (items.length > 0 && characters + text.length > PAGE_CHARACTERS) return { items, nextCursor: toCursor(last!) };
      items.push(text);
      characters += text.length;
      last = { slug, key };
      await pace(text.length);
    }
  }
  return { items, nextCursor: null };
}

interface PageOptions {
  readonly method: ListMethod;
  readonly form: ListForm;
  readonly after: Position | null;
  readonly isStranger: IsStranger;
}

function* entriesOf(
  table: ServiceTable,
  method: ListMethod,
  form: ListForm,
  scope: Pick<Scope, 'access' | 'names'>,
  isStranger: IsStranger,
): Generator<readonly [string, () => string]> {
  const { access } = scope;
  const isShown = shownIn(table.listing, LISTS[method].member, scope, isStranger);
  if (method === 'tools/list')
    for (const [name, one] of table.tools) {
      const text = one.tool.texts[form];
      if ((access && !access.allows('tool', table.service, one.tool.name)) || !isShown(one.tool.name)) continue;
      if (text !== null)
        yield [
          name,
          () => renderTool(table, name, isStranger(one.offer) ? shortTool(text, one.tool.description) : text, one),
        ];
    }
  else if (access === null || access.allows('tool', table.service, null)) {
    const { member, key } = LISTS[method];
    for (const [name, item] of table[member]) {
      const text = item.texts[form];
      if (text !== null && isShown(item.key)) yield [name, () => renderItem(name, text, key)];
    }
  }
}

/**
 * A tool in the list of the aggregate, as JSON text. It is the server's text with the name here, the price, and the
 * digest of the definition.
 */
function renderTool(
  { slug, listing }: ServiceTable,
  exposed: string,
  readable: string,
  { tool, offer }: ServiceTool,
): string {
  const edits = createUriEdits(readable, slug);
  edits.ui(membersOf(readable));
  const text = splice(readable, edits.edits);
  return writeMeta(text, JSON.stringify(viewToolCallPrice(offer, tool.name, listing.offers)), tool.definition, {
    name: JSON.stringify(exposed),
  });
}

/** A prompt, resource or template in the list of the aggregate. `key`: the member with its name or URI. */
function renderItem(exposed: string, text: string, key: 'name' | 'uri' | 'uriTemplate'): string {
  return withMembers(text, { start: 0, end: text.length }, { [key]: JSON.stringify(exposed) }).text;
}

/** The end of a page of the aggregate. The next page begins after it, even if the lists have changed. */
interface Position {
  readonly slug: string;
  /** Exposed name or URI of the last element. */
  readonly key: string;
}

/** The gateway never issues longer cursors. */
const TEXT_MAX = 16_384;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

function toCursor({ slug, key }: Position): string {
  return Buffer.from(JSON.stringify([slug, key])).toString('base64url');
}

/** null if the text is not a cursor of the aggregate. */
export function fromCursor(text: string): Position | null {
  if (text.length > TEXT_MAX || !BASE64URL.test(text)) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (!Array.isArray(value) || value.length !== 2) return null;
    const [slug, key] = value as readonly unknown[];
    return typeof slug === 'string' && typeof key === 'string' ? { slug, key } : null;
  } catch {
    return null;
  }
}
