import { createHash } from 'node:crypto';
import { createPace, type JsonObject, isObject, membersOf, type Members } from '#wire';
import type { LeftOut, ListedTool, Offer, ToolPin, ToolDefinition } from '#catalog';
import type { ServerFacts } from '../request/mcp-request.ts';
import type { ListKind } from '../wire/own-messages.ts';
import { type SearchIndex, indexTools } from './search-index.ts';
import { CHARACTERS_PER_TURN, type FetchedLists, type ListedItem, type ItemTexts } from './fetch-lists.ts';

// The lists of one server as the gateway keeps them: read, pinned and indexed.

/** A tool as its server lists it. All its texts come from the provider. */
export interface ToolEntry extends ListedTool {
  /** The definition as its server wrote it. */
  readonly text: string;
  readonly texts: ItemTexts;
  readonly inputSchema: JsonObject | null;
}

export interface ServerListing {
  readonly facts: ServerFacts;
  /** By name, in the server's order. If several tools have one name, the first. */
  readonly tools: ReadonlyMap<string, ToolEntry>;
  readonly resources: readonly ListedItem[];
  readonly resourceTemplates: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  readonly index: SearchIndex;
  /** When the lists were read, in epoch milliseconds. */
  readonly fetchedAt: number;
  readonly leftOut: readonly LeftOut[];
  readonly truncated: boolean;
  readonly endless: FetchedLists['endless'];
  readonly size: number;
  /** A digest for each kind. It is equal if nothing has changed. */
  readonly digests: Readonly<Record<ListKind, string>>;
}

interface MakeListing {
  readonly offer: Offer;
  readonly fetched: FetchedLists;
  readonly sizeMax: number;
  /** The previous listing. Entries that have not changed stay the same objects. */
  readonly before: ServerListing | null;
  /** Stores the digests of the definitions by tool name, and resolves to their pins; to null if the database fails. */
  readonly pin: (definitions: ReadonlyMap<string, string>) => Promise<ReadonlyMap<string, ToolPin> | null>;
  readonly now: () => number;
}

/** Reads, pins and indexes the lists of a server. A list that could not be read stays as it was, if there is room. */
export async function makeListing({ offer, fetched, sizeMax, before, pin, now }: MakeListing): Promise<ServerListing> {
  const { others, facts, truncated, leftOut, endless } = fetched;
  let { size } = fetched;
  const readable = (items: readonly ListedItem[] = []) => {
    const withThem = items.reduce((sum, { text }) => sum + text.length, size);
    if (withThem > sizeMax) return [];
    size = withThem;
    return items;
  };
  const resources = others['resources/list'] ?? readable(before?.resources);
  const resourceTemplates = others['resources/templates/list'] ?? readable(before?.resourceTemplates);
  const prompts = others['prompts/list'] ?? readable(before?.prompts);
  const read: (ShownTool | ToolEntry)[] = [];
  const pace = createPace(CHARACTERS_PER_TURN);
  for (const { key, text, texts } of fetched.tools) {
    await pace(text.length);
    const known = before?.tools.get(key);
    read.push(known?.text === text ? known : { ...readTool(text), texts });
  }
  const pins = await pin(new Map(read.map((tool) => [tool.name, sha256Of(tool)])));
  const tools = new Map<string, ToolEntry>();
  for (const tool of read)
    tools.set(tool.name, pinned(tool, pins ? (pins.get(tool.name) ?? null) : before?.tools.get(tool.name)?.definition));

  const same =
    before !== null && tools.size === before.tools.size && read.every((tool) => tool === before.tools.get(tool.name));
  const index = same ? before.index : await indexTools(tools.values(), `${offer.service} ${offer.displayName}`);
  return {
    facts,
    tools,
    resources,
    resourceTemplates,
    prompts,
    index,
    fetchedAt: now(),
    leftOut,
    truncated,
    endless,
    size,
    digests: {
      tools: digest([...tools.values()].map(({ text, definition }) => `${definition.version} ${text}`)),
      resources: digest(textsOf(resources).concat('', textsOf(resourceTemplates))),
      prompts: digest(textsOf(prompts)),
    },
  };
}

const textsOf = (items: readonly ListedItem[]): readonly string[] => items.map(({ text }) => text);

const sha256Of = (tool: ShownTool | ToolEntry) => ('definition' in tool ? tool.definition.sha256 : tool.sha256);

type KnownPin = Pick<ToolPin, 'sha256' | 'changedAt'> & { readonly version: number | null };

/** The entry with its pin. An entry that already has this pin stays the same object. */
function pinned(tool: ShownTool | ToolEntry, pin: KnownPin | null | undefined): ToolEntry {
  const version =
    pin && pin.version !== null && pin.sha256 === sha256Of(tool)
      ? { version: pin.version, changedAt: pin.changedAt }
      : NO_PIN;
  if ('definition' in tool) {
    const { definition } = tool;
    if (definition.version === version.version && definition.changedAt === version.changedAt) return tool;
    return toEntry({ ...readingOf(tool), sha256: definition.sha256, remoteRef: definition.remoteRef }, version);
  }
  return toEntry(tool, version);
}

const NO_PIN = { version: null, changedAt: null } as const;

const readingOf = ({ name, title, description, text, texts }: ToolEntry) => ({
  name,
  title,
  description,
  text,
  texts,
});

function digest(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text.length} `).update(text);
  return hash.digest('base64url');
}

interface ReadTool {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly text: string;
  readonly sha256: string;
  readonly remoteRef: boolean;
}

interface ShownTool extends ReadTool {
  readonly texts: ItemTexts;
}

/**
 * Reads a tool (JSON text). Throws RawJsonError or SyntaxError if the text is not a JSON object without duplicate keys.
 */
export function readTool(text: string): ReadTool {
  const value = JSON.parse(text) as JsonObject;
  const members = membersOf(text);
  const { name, title, description, inputSchema, outputSchema } = value;
  return {
    name: name as string,
    title: typeof title === 'string' ? title : null,
    description: typeof description === 'string' ? description : '',
    text,
    sha256: definitionHash(text, members),
    remoteRef: hasRemoteRef(inputSchema) || hasRemoteRef(outputSchema),
  };
}

function toEntry(
  { sha256, remoteRef, ...tool }: ShownTool,
  pin: Pick<ToolDefinition, 'version' | 'changedAt'>,
): ToolEntry {
  return new Tool(tool, { sha256, version: pin.version, changedAt: pin.changedAt, remoteRef });
}

/** The text that most readers take: that of the earlier revisions, because it has every check. */
export const readableText = ({ legacy, modern }: ItemTexts): string => (legacy ?? modern)!;

/**
 * A schema is parsed on demand, and only weakly referenced. Parsed schemas take ten times the memory of their text, and
 * the provider decides how many it lists.
 */
class Tool implements ToolEntry {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly text: string;
  readonly texts: ItemTexts;
  readonly definition: ToolDefinition;
  #schema: WeakRef<JsonObject> | null = null;

  constructor(
    { name, title, description, text, texts }: Omit<ShownTool, 'sha256' | 'remoteRef'>,
    definition: ToolDefinition,
  ) {
    this.name = name;
    this.title = title;
    this.description = description;
    this.text = text;
    this.texts = texts;
    this.definition = definition;
  }

  get size(): number {
    return this.text.length;
  }

  get inputSchema(): JsonObject | null {
    const known = this.#schema?.deref();
    if (known) return known;
    const text = readableText(this.texts);
    const member = membersOf(text).get('inputSchema');
    const schema: unknown = member && JSON.parse(text.slice(member.start, member.end));
    if (!isObject(schema)) return null;
    this.#schema = new WeakRef(schema);
    return schema;
  }
}

/**
 * The members that a model gets, so these define a tool. Icons, `execution` and `_meta` are not part of the definition.
 */
const DEFINING = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

/**
 * SHA-256, in hex, of a JSON object with the defining members. They are in the order of DEFINING, without white space
 * between them, and each value is unchanged text. `members` are those of the tool in `text`.
 */
function definitionHash(text: string, members: Members): string {
  const hash = createHash('sha256');
  let before = '{';
  for (const key of DEFINING) {
    const member = members.get(key);
    if (!member) continue;
    hash.update(`${before}"${key}":${text.slice(member.start, member.end)}`);
    before = ',';
  }
  return hash.update(before === '{' ? '{}' : '}').digest('hex');
}

/**
 * Whether a schema refers to another document. Only `#…` is local. The gateway never follows such a reference, because
 * the provider chose its address. Data in a `default` or an `enum` that looks like a reference counts too.
 */
function hasRemoteRef(schema: unknown): boolean {
  const open: unknown[] = [schema];
  while (open.length > 0) {
    const node = open.pop();
    if (typeof node !== 'object' || node === null) continue;
    if (!Array.isArray(node))
      for (const key of ['$ref', '$dynamicRef', '$recursiveRef'])
        if (Object.hasOwn(node, key)) {
          const target: unknown = (node as Readonly<Record<string, unknown>>)[key];
          if (typeof target === 'string' && !target.startsWith('#')) return true;
        }
    for (const child of Object.values(node as Readonly<Record<string, unknown>>)) open.push(child);
  }
  return false;
}
