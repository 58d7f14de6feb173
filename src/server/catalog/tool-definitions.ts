import { createHash } from 'node:crypto';
import { loadStatements, type Database, type Row, type Step } from '#store';
import { printable } from '#security';
import type { Offer } from './offers.ts';

/** The definition of a tool, and whether it has changed. Definitions come from strangers. */
export interface ToolDefinition {
  /** SHA-256 of the definition, in hex. */
  readonly sha256: string;
  /** Counts the definitions that the tool has had; null if it has no pin. */
  readonly version: number | null;
  /** Epoch milliseconds; null if it has never changed. */
  readonly changedAt: number | null;
  /** One of its schemas refers to another document. The gateway never fetches it. */
  readonly remoteRef: boolean;
}

export interface ListedTool {
  readonly name: string;
  readonly title: string | null;
  /** May be empty. */
  readonly description: string;
  /** Parsed JSON Schema; the same object each time. */
  readonly inputSchema: unknown;
  /** Characters of its definition. Reading the schema takes time that grows with them. */
  readonly size: number;
  readonly definition: ToolDefinition;
}

/** An element of a server's list that clients cannot read. It is listed nowhere. Its texts come from the provider. */
export interface LeftOut {
  readonly kind: 'tool' | 'resource' | 'resource_template' | 'prompt';
  /** Its name or URI; null without one. */
  readonly name: string | null;
  /** The member that is wrong and what it must be, in words. */
  readonly fault: string;
}

/** The tools that the servers of tool offers list, from the protocol of the tools. */
export interface ToolListings {
  /** Empty if the list is not known. */
  leftOutOf(offer: Offer): readonly LeftOut[];
  /** null if the list is not known. */
  toolsOf(offer: Offer): readonly ListedTool[] | null;
  /** Of the offers of a service, those whose lists are its lists, in the order in which they count. */
  definers(offers: readonly Offer[]): readonly Offer[];
  version(): number;
}

/** Most characters of a name or a reason that a view shows. */
const SHOWN_MAX = 256;

export const viewLeftOut = ({ kind, name, fault }: LeftOut) => ({
  kind,
  name: name === null ? null : printable(name, SHOWN_MAX),
  reason: printable(fault, SHOWN_MAX),
});

/** `more`: the properties of an element that come before the others. */
export const leftOutSchemaOf = (more: Readonly<Record<string, object>>) => ({
  type: 'array',
  description:
    'What the MCP server lists and clients cannot read, so it is not listed here and cannot be called; at most 100. Empty if all can be read',
  items: {
    title: Object.keys(more).length === 0 ? 'LeftOut' : 'LeftOutOfProvider',
    type: 'object',
    required: [...Object.keys(more), 'kind', 'name', 'reason'],
    properties: {
      ...more,
      kind: { type: 'string', enum: ['tool', 'resource', 'resource_template', 'prompt'] },
      name: { type: ['string', 'null'], description: 'Its name or URI; null without one' },
      reason: { type: 'string', description: 'The member that is wrong and what it must be' },
    },
  },
});

/** A definition in the form for clients, beside the tool. `changed_at` is present once it has changed. */
export interface DefinitionView {
  readonly sha256: string;
  readonly version?: number;
  readonly changed_at?: string;
  readonly remote_ref?: true;
}

export function viewDefinition({ sha256, version, changedAt, remoteRef }: ToolDefinition): DefinitionView {
  return {
    sha256,
    ...(version === null ? {} : { version }),
    ...(changedAt === null ? {} : { changed_at: new Date(changedAt).toISOString() }),
    ...(remoteRef ? { remote_ref: true } : {}),
  };
}

/** The digest that a tool's definition is compared with, and how often it has changed. Times are epoch milliseconds. */
export interface ToolPin {
  /** SHA-256 of the definition, in hex. */
  readonly sha256: string;
  /** Counts the definitions that the tool has had, starting with 1. */
  readonly version: number;
  readonly firstSeen: number;
  /** null at version 1. */
  readonly changedAt: number | null;
}

export interface ToolPins {
  /**
   * Records the current definitions of a service's tools. `definitions`: tool names with digests. Returns their pins. A
   * definition that differs from the last recorded one is a new version. Tools above the provider's limit have no pin.
   * Rejects with the database's error.
   */
  note(
    provider: string,
    service: string,
    definitions: ReadonlyMap<string, string>,
  ): Promise<ReadonlyMap<string, ToolPin>>;
}

const SQL = loadStatements(import.meta.url, './sql/tool-pins.sql', [
  'listToolPins',
  'countToolPins',
  'putToolPin',
  'deleteToolPin',
]);

interface ToolPinsOptions {
  readonly now: () => number;
  /**
   * Maximum pins of one service, including tools that it no longer lists. Their pins are kept so that a tool that comes
   * back with another definition counts as changed. If there are too many, the oldest are deleted first.
   */
  readonly serviceMax?: number;
  /** Maximum pins for all services of one provider. */
  readonly providerMax?: number;
}

/** Maximum steps in one transaction. Billed calls may have to wait until the transaction is done. */
const GROUP = 200;

/**
 * Names that are stored as they are, because a column and its index can hold them in both database engines. Other names
 * are stored as a digest. Its colon keeps the two apart.
 */
const PLAIN = /^[\w./ -]{1,128}$/;

const keyOf = (tool: string) =>
  PLAIN.test(tool) ? tool : `sha256:${createHash('sha256').update(tool, 'utf16le').digest('hex')}`;

/** The pins of all tools, in the database. Writes nothing if no definition has changed. */
export function createToolPins(database: Pick<Database, 'query' | 'batch'>, options: ToolPinsOptions): ToolPins {
  const { now, serviceMax = 4_000, providerMax = 20_000 } = options;

  const read = async (provider: string, service: string) =>
    new Map(
      (await database.query(SQL.listToolPins, [provider, service])).map((row) => [row['tool'] as string, toPin(row)]),
    );

  async function roomOf(provider: string): Promise<number> {
    const [row] = await database.query(SQL.countToolPins, [provider]);
    return Math.max(0, providerMax - Number(row!['pins']));
  }

  return {
    async note(provider, service, definitions) {
      let pins = await read(provider, service);
      const keys = new Map([...definitions.keys()].map((tool) => [tool, keyOf(tool)]));
      const changed = [...definitions].filter(([tool, sha256]) => pins.get(keys.get(tool)!)?.sha256 !== sha256);
      const fresh = changed.filter(([tool]) => !pins.has(keys.get(tool)!));
      const room = fresh.length === 0 ? 0 : await roomOf(provider);
      const tooMany = Math.max(pins.size + fresh.length - serviceMax, fresh.length - room);
      const gone = forgotten(pins, new Set(keys.values()), tooMany);
      const unpinned = new Set(fresh.slice(room + gone.length).map(([tool]) => tool));
      const noted = changed.filter(([tool]) => !unpinned.has(tool));
      const at = now();
      const steps: Step[] = [
        ...gone.map((key) => ({ statement: SQL.deleteToolPin, params: [provider, service, key] })),
        ...noted.map(([tool, sha256]) => ({
          statement: SQL.putToolPin,
          params: [provider, service, keys.get(tool)!, sha256, at],
        })),
      ];
      let written = 0;
      for (let from = 0; from < steps.length; from += GROUP)
        for (const row of (await database.batch(steps.slice(from, from + GROUP))).flat()) {
          pins.set(row['tool'] as string, toPin(row));
          written++;
        }
      if (written < noted.length) pins = await read(provider, service);
      const toolPins = new Map<string, ToolPin>();
      for (const [tool, key] of keys) {
        const pin = pins.get(key);
        if (pin) toolPins.set(tool, pin);
      }
      return toolPins;
    },
  };
}

/** The keys of the `tooMany` oldest pins that are not `listed`. */
function forgotten(
  pins: ReadonlyMap<string, ToolPin>,
  listed: ReadonlySet<string>,
  tooMany: number,
): readonly string[] {
  if (tooMany <= 0) return [];
  return [...pins]
    .filter(([key]) => !listed.has(key))
    .sort(([, a], [, b]) => lastChange(a) - lastChange(b))
    .slice(0, tooMany)
    .map(([key]) => key);
}

const lastChange = ({ changedAt, firstSeen }: ToolPin) => changedAt ?? firstSeen;

function toPin(row: Row): ToolPin {
  const changedAt = row['changed_at'] as bigint | null;
  return {
    sha256: row['sha256'] as string,
    version: Number(row['version']),
    firstSeen: Number(row['first_seen']),
    changedAt: changedAt === null ? null : Number(changedAt),
  };
}
