import { createPace, isObject, membersOf } from '#wire';
import { viewDefinition, viewToolCallPrice } from '#catalog';
import { readableText } from '../../catalogue/listing.ts';
import type { FoundTool, ServiceListing, ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import {
  fullName,
  NAMED_BY,
  PRIMITIVE,
  WORD,
  admitsIn,
  type BridgedEntry,
  type BridgedSearch,
} from '../builtin/bridged-services.ts';
import { ASK, FIND_LIMIT, QUERY_MAX } from './own-tools.ts';
import { createOwnerPlaces } from '../../catalogue/search-index.ts';
import { splitName } from './names.ts';
import { type IsStranger, shortDescription, shortTool, strangerOf } from './strangers.ts';
import { countTools, type Scope, type ServiceTable, type Tables, WORK } from './tables.ts';

/** Most characters of all tools in an answer, because a model has to read them. The first tool may be longer. */
const ANSWER_MAX = 128 * 1024;

/** Members of a `tools/call` result, each as JSON text. */
type ToolResult = Readonly<Record<string, string>>;

/** The result of a call of `find_tools`. Wrong arguments give a tool error, because a model can correct them. */
export async function findTools(
  args: unknown,
  scope: Scope,
  deps: {
    readonly catalogue: Pick<ToolCatalogue, 'find' | 'service'>;
    readonly tables: Tables;
    readonly bridged: BridgedSearch;
    readonly isStranger: IsStranger;
  },
): Promise<ToolResult> {
  const { query, limit = FIND_LIMIT.fallback, services } = isObject(args) ? args : {};
  if (typeof query !== 'string' || query.length > QUERY_MAX)
    return failed(`query must be a string of at most ${QUERY_MAX} characters`);
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > FIND_LIMIT.max)
    return failed(`limit must be an integer from 1 to ${FIND_LIMIT.max}`);
  if (
    services !== undefined &&
    services !== null &&
    !(Array.isArray(services) && services.every((name) => typeof name === 'string'))
  )
    return failed('services must be a list of names of services');

  const among = services ? new Set(services as readonly string[]) : null;
  const names = among ? scope.services.filter((name) => among.has(name)) : scope.services;
  const searched = await countTools(names, scope, deps.catalogue);
  const isNamed: Scope['names'] = (...what) => (among?.has(what[0]) ?? false) || scope.names(...what);
  const ownerOf = (listing: ServiceListing, tool: string) =>
    strangerOf(listing, tool, { names: isNamed }, deps.isStranger);
  const exact = toolNamed(query.trim(), names, scope, deps.tables);
  const matches =
    exact !== null
      ? [exact]
      : query.trim() === ''
        ? listed(names, scope, { limit, catalogue: deps.catalogue, ownerOf, isStranger: deps.isStranger })
        : await deps.catalogue.find(query, { limit, services: names, access: scope.access, ownerOf });
  const tools: string[] = [];
  let characters = 0;
  const pace = createPace(WORK.turn);
  for (const one of matches) {
    const table = deps.tables.tableOf(one.service);
    // Its last provider has left in an earlier turn.
    if (table === null) continue;
    await pace(WORK.name * table.work('tools'));
    const text = render(one, table, exact === null && deps.isStranger(one.offer));
    if (text === null) continue;
    if (tools.length > 0 && characters + text.length > ANSWER_MAX) break;
    tools.push(text);
    characters += text.length;
  }
  const admits = admitsIn(scope);
  const searchedNames: string[] = [];
  for (const kind of deps.bridged.kinds(admits)) {
    const entries = await deps.bridged.find(
      kind,
      query,
      limit,
      (entry) => admits(entry) && (!among || among.has(fullName(kind, entry.name))),
      (entry) =>
        isNamed(fullName(kind, entry.name), null) || (scope.access?.names(PRIMITIVE[kind], entry.name, null) ?? false)
          ? null
          : deps.bridged.stranger(entry),
    );
    const texts: string[] = [];
    for (const entry of entries) {
      const text = renderBridged(entry, deps.bridged);
      if (characters + text.length > ANSWER_MAX) break;
      texts.push(text);
      characters += text.length;
    }
    searchedNames.push(`,"${WORD[kind].replace(' ', '_')}s":[${texts.join()}]`);
  }
  return toResult(`{"tools":[${tools.join()}],"searched":${searched}${searchedNames.join('')}}`, false);
}

function renderBridged(entry: BridgedEntry, bridged: BridgedSearch): string {
  const { kind, name, displayName } = entry;
  const description = bridged.stranger(entry) === null ? entry.description : shortDescription(entry.description);
  const call = { name: ASK[kind], arguments: { [NAMED_BY[kind]]: name } };
  return JSON.stringify({ [NAMED_BY[kind]]: name, title: displayName, description, price: bridged.price(entry), call });
}

/** The tool that has this name in the aggregate; null if none of the services has it, or the caller may not use it. */
function toolNamed(
  name: string,
  services: readonly string[],
  { access }: Pick<Scope, 'access'>,
  tables: Tables,
): FoundTool | null {
  const prefix = splitName(name)?.prefix;
  const service = prefix === undefined ? null : tables.prefixed(prefix);
  if (service === null || !services.includes(service)) return null;
  const tool = tables.tableOf(service)?.tools.get(name);
  return tool && (access?.allows('tool', service, tool.tool.name) ?? true) ? { service, ...tool } : null;
}

/** Tools by their names, those of strangers last. */
function listed(
  services: readonly string[],
  { access }: Pick<Scope, 'access'>,
  {
    limit,
    catalogue,
    ownerOf,
    isStranger,
  }: {
    readonly limit: number;
    readonly catalogue: Pick<ToolCatalogue, 'service'>;
    readonly ownerOf: (listing: ServiceListing, tool: string) => string | null;
    readonly isStranger: IsStranger;
  },
): readonly FoundTool[] {
  const matches: FoundTool[] = [];
  const takePlace = createOwnerPlaces();
  for (const isLast of [false, true])
    for (const service of services) {
      if (matches.length >= limit) break;
      const listing = catalogue.service(service);
      if (!listing || listing.offers.every(isStranger) !== isLast) continue;
      const names = [...listing.tools.keys()]
        .filter((name) => access?.allows('tool', service, name) ?? true)
        .sort()
        .filter((name) => takePlace(ownerOf(listing, name)));
      for (const name of names.slice(0, limit - matches.length)) matches.push({ service, ...listing.tools.get(name)! });
    }
  return matches;
}

/** null for a tool that its service has no more. */
function render(
  { service, tool, offer }: FoundTool,
  { listing, toolNames }: ServiceTable,
  isShort: boolean,
): string | null {
  const exposed = toolNames.get(tool.name);
  if (exposed === undefined) return null;
  const whole = readableText(tool.texts);
  const text = isShort ? shortTool(whole, tool.description) : whole;
  const members = membersOf(text);
  const raw = (key: string) => {
    const member = members.get(key);
    return member ? `,"${key}":${text.slice(member.start, member.end)}` : '';
  };
  const price = JSON.stringify(viewToolCallPrice(offer, tool.name, listing.offers));
  const definition = JSON.stringify(viewDefinition(tool.definition));
  const name = JSON.stringify(exposed);
  return `{"name":${name},"service":${JSON.stringify(service)}${['title', 'description', 'inputSchema'].map(raw).join('')},"price":${price},"definition":${definition}}`;
}

const failed = (why: string) => toResult(JSON.stringify({ error: why }), true);

function toResult(structured: string, isError: boolean): ToolResult {
  const text = isError ? (JSON.parse(structured) as { readonly error: string }).error : structured;
  return {
    content: JSON.stringify([{ type: 'text', text }]),
    ...(isError ? { isError: 'true' } : { structuredContent: structured }),
  };
}
