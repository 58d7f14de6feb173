import { createPace, membersOf, withMembers } from '#wire';
import type { Offer } from '#catalog';
import type { ListChange, ServiceListing, ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { countTools, type Scope, type TableKind, WORK } from './tables.ts';

// What strangers list is found, and not listed unless the caller names it. So nobody can fill the lists of everybody.

/** Whether the provider of an offer is neither the operator nor one whom the operator has let in. */
export type IsStranger = (offer: Offer) => boolean;

/** Whether the lists of the aggregate show an element of a service, by its own name or URI there. */
export function shownIn(
  { service, offers }: ServiceListing,
  kind: TableKind,
  { names }: Pick<Scope, 'names'>,
  isStranger: IsStranger,
): (key: string) => boolean {
  // Beside a provider that is let in, a stranger defines nothing.
  if (!offers.every(isStranger)) return () => true;
  return (key) => names(service, kind === 'tools' ? key : null);
}

/** Whether a change of a service can change the lists of a scope. */
export const concerns = (
  { service, offers }: ListChange,
  { includes, names }: Pick<Scope, 'includes' | 'names'>,
  isStranger: IsStranger,
): boolean => includes(service) && (!offers.every(isStranger) || names(service));

interface Shown {
  readonly services: readonly string[];
  /** Whether they are all that the caller may use. */
  readonly whole: boolean;
}

/**
 * The services of which the lists of the aggregate show something. None if the tools of the operator are more than
 * `toolsMax`; those of strangers that the caller names only if they fit beside them, the smallest first.
 */
export async function shownServices(
  kind: TableKind,
  scope: Scope,
  {
    catalogue,
    isStranger,
    toolsMax,
  }: { readonly catalogue: Pick<ToolCatalogue, 'service'>; readonly isStranger: IsStranger; readonly toolsMax: number },
): Promise<Shown> {
  const pace = createPace(WORK.turn);
  const services: string[] = [];
  const ofStrangers: (readonly [service: string, tools: number])[] = [];
  let tools = 0;
  let whole = true;
  for (const service of scope.services) {
    const listing = catalogue.service(service);
    await pace(WORK.service);
    if (!listing) continue;
    const isOther = listing.offers.every(isStranger);
    if (isOther && !scope.names(service)) {
      if (listing.toolCount > 0) whole = false;
      continue;
    }
    if (kind !== 'tools') {
      services.push(service);
      continue;
    }
    const all = await countTools([service], scope, catalogue);
    const count = isOther ? countShown(listing, scope, isStranger) : all;
    if (count < all) whole = false;
    if (isOther) ofStrangers.push([service, count]);
    else {
      services.push(service);
      tools += count;
    }
    if (tools > toolsMax) return { services: [], whole: false };
  }
  for (const [service, count] of ofStrangers.sort(([, a], [, b]) => a - b)) {
    tools += count;
    if (tools > toolsMax) return { services, whole: false };
    services.push(service);
  }
  return { services, whole };
}

function countShown(listing: ServiceListing, scope: Scope, isStranger: IsStranger): number {
  const isShown = shownIn(listing, 'tools', scope, isStranger);
  const { access } = scope;
  return listing.tools
    .keys()
    .filter((tool) => isShown(tool) && (access?.allows('tool', listing.service, tool) ?? true))
    .reduce((sum) => sum + 1, 0);
}

/** The stranger to whom a tool belongs that the lists do not show; null for any other tool. */
export const strangerOf = (
  { service, offers }: ServiceListing,
  tool: string,
  { names }: Pick<Scope, 'names'>,
  isStranger: IsStranger,
): string | null => (offers.every(isStranger) && !names(service, tool) ? offers[0]!.provider.id : null);

/** Most characters of the definition of a stranger's tool, because models read all that is listed or found. */
const DEFINITION_MAX = 1_024;
/** Most characters of its input schema, and those that its description has in any case. */
const SCHEMA_MAX = 640;
const DESCRIPTION_ROOM = 200;
/** Members that are kept if there is room, the most important first. */
const KEPT = ['annotations', 'execution', 'title', '_meta', 'outputSchema'] as const;
const CUT = '… (cut: find_tools with the name of this tool as its query gives all of it)';

/** A tool (JSON text) with a definition of at most DEFINITION_MAX characters. */
export function shortTool(text: string, description: string): string {
  if (text.length <= DEFINITION_MAX) return text;
  const members = membersOf(text);
  const textOf = (key: string) => {
    const member = members.get(key);
    return member ? text.slice(member.start, member.end) : null;
  };
  const change: Record<string, string | null> = {};
  for (const key of members.keys()) if (key !== 'name') change[key] = null;
  const schema = textOf('inputSchema');
  change['inputSchema'] = schema !== null && schema.length <= SCHEMA_MAX ? schema : '{"type":"object"}';
  let room = DEFINITION_MAX - DESCRIPTION_ROOM - CUT.length - change['inputSchema'].length;
  for (const key of KEPT) {
    const member = textOf(key);
    if (member === null || member.length > room) continue;
    change[key] = member;
    room -= member.length;
  }
  change['description'] = JSON.stringify(shortened(description, DESCRIPTION_ROOM + room) + CUT);
  return withMembers(text, { start: 0, end: text.length }, change, members).text;
}

/** The words of a stranger about an agent or a model. */
export function shortDescription(description: string): string {
  const cut = shortened(description, DEFINITION_MAX);
  return cut === description ? cut : `${cut}…`;
}

/** The beginning of a text that has at most so many characters in JSON. */
function shortened(text: string, max: number): string {
  let cut = text.slice(0, max);
  while (JSON.stringify(cut).length - 2 > max) cut = cut.slice(0, cut.length * 0.8);
  return cut.toWellFormed();
}
