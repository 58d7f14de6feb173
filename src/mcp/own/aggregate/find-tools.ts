import { createPace, isObject, membersOf } from '#wire';
import { viewDefinition, viewToolCallPrice } from '#catalog';
import { readableText } from '../../catalogue/listing.ts';
import type { FoundTool, ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import {
  fullName,
  NAMED_BY,
  WORD,
  admitsIn,
  type BridgedEntry,
  type BridgedSearch,
} from '../builtin/bridged-services.ts';
import { ASK, FIND_LIMIT, QUERY_MAX } from './own-tools.ts';
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
  const matches =
    query.trim() === ''
      ? listed(names, scope, limit, deps.catalogue)
      : await deps.catalogue.find(query, { limit, services: names, access: scope.access });
  const tools: string[] = [];
  let characters = 0;
  const pace = createPace(WORK.turn);
  for (const one of matches) {
    const table = deps.tables.tableOf(one.service);
    // Its last provider has left in an earlier turn.
    if (table === null) continue;
    await pace(WORK.name * table.work('tools'));
    const text = render(one, table);
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
  const { kind, name, displayName, description } = entry;
  const call = { name: ASK[kind], arguments: { [NAMED_BY[kind]]: name } };
  return JSON.stringify({ [NAMED_BY[kind]]: name, title: displayName, description, price: bridged.price(entry), call });
}

function listed(
  services: readonly string[],
  { access }: Pick<Scope, 'access'>,
  limit: number,
  catalogue: Pick<ToolCatalogue, 'service'>,
): readonly FoundTool[] {
  const matches: FoundTool[] = [];
  for (const service of services) {
    if (matches.length >= limit) break;
    const tools = catalogue.service(service)?.tools;
    const names = [...(tools?.keys() ?? [])].filter((name) => access?.allows(service, name) ?? true);
    for (const name of names.sort().slice(0, limit - matches.length)) matches.push({ service, ...tools!.get(name)! });
  }
  return matches;
}

/** null for a tool that its service has no more. */
function render({ service, tool, offer }: FoundTool, { listing, toolNames }: ServiceTable): string | null {
  const exposed = toolNames.get(tool.name);
  if (exposed === undefined) return null;
  const text = readableText(tool.texts);
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
