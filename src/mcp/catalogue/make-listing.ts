import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Offer, ToolPin } from '#gateway';
import type { FetchedLists } from './fetch-lists.ts';
import type { ListedItem, ServerListing, ToolEntry } from './listing.ts';
import { indexTools } from './search-index.ts';
import { readTool, toEntry, type ReadTool } from './tool-entry.ts';

/** Tools that are read before other work gets a turn of the event loop. */
const IN_ONE_GO = 100;

interface MakeListing {
  readonly offer: Offer;
  readonly fetched: FetchedLists;
  /** Most characters of all lists. */
  readonly sizeMax: number;
  /** The previous listing. Entries that have not changed stay the same objects. */
  readonly before: ServerListing | null;
  /** Stores the digests of the definitions by tool name, and resolves to their pins; to null if the database fails. */
  readonly pin: (definitions: ReadonlyMap<string, string>) => Promise<ReadonlyMap<string, ToolPin> | null>;
  readonly now: () => number;
}

/** Reads, pins and indexes the lists of a server. A list that could not be read stays as it was, if there is room. */
export async function makeListing({ offer, fetched, sizeMax, before, pin, now }: MakeListing): Promise<ServerListing> {
  const { others, facts, truncated } = fetched;
  let { size } = fetched;
  const kept = (items: readonly ListedItem[] = []) => {
    const withThem = items.reduce((sum, { text }) => sum + text.length, size);
    if (withThem > sizeMax) return [];
    size = withThem;
    return items;
  };
  const resources = others['resources/list'] ?? kept(before?.resources);
  const resourceTemplates = others['resources/templates/list'] ?? kept(before?.resourceTemplates);
  const prompts = others['prompts/list'] ?? kept(before?.prompts);
  const read: (ReadTool | ToolEntry)[] = [];
  for (const [index, { key, text }] of fetched.tools.entries()) {
    const known = before?.tools.get(key);
    read.push(known?.text === text ? known : readTool(text));
    if (index % IN_ONE_GO === IN_ONE_GO - 1) await nextTurn();
  }
  const pins = await pin(new Map(read.map((tool) => [tool.name, sha256Of(tool)])));
  const tools = new Map<string, ToolEntry>();
  for (const tool of read)
    tools.set(tool.name, pinned(tool, pins ? (pins.get(tool.name) ?? null) : before?.tools.get(tool.name)?.definition));

  const same =
    before !== null && tools.size === before.tools.size && read.every((tool) => tool === before.tools.get(tool.name));
  const index = same ? before.index : indexTools(tools.values(), `${offer.service} ${offer.displayName}`);
  return {
    facts,
    tools,
    resources,
    resourceTemplates,
    prompts,
    index,
    fetchedAt: now(),
    truncated,
    size,
    digests: {
      tools: digest([...tools.values()].map(({ text, definition }) => `${definition.version} ${text}`)),
      resources: digest(textsOf(resources).concat('', textsOf(resourceTemplates))),
      prompts: digest(textsOf(prompts)),
    },
  };
}

const textsOf = (items: readonly ListedItem[]): readonly string[] => items.map(({ text }) => text);

const sha256Of = (tool: ReadTool | ToolEntry) => ('definition' in tool ? tool.definition.sha256 : tool.sha256);

type KnownPin = Pick<ToolPin, 'sha256' | 'changedAt'> & { readonly version: number | null };

/** The entry with its pin. An entry that already has this pin stays the same object. */
function pinned(tool: ReadTool | ToolEntry, pin: KnownPin | null | undefined): ToolEntry {
  const of =
    pin && pin.version !== null && pin.sha256 === sha256Of(tool)
      ? { version: pin.version, changedAt: pin.changedAt }
      : NO_PIN;
  if ('definition' in tool) {
    const { definition } = tool;
    if (definition.version === of.version && definition.changedAt === of.changedAt) return tool;
    return toEntry({ ...readingOf(tool), sha256: definition.sha256, remoteRef: definition.remoteRef }, of);
  }
  return toEntry(tool, of);
}

const NO_PIN = { version: null, changedAt: null } as const;

const readingOf = ({ name, title, description, text }: ToolEntry) => ({ name, title, description, text });

function digest(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text.length} `).update(text);
  return hash.digest('base64url');
}
