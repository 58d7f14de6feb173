import type { JsonObject } from '#wire';
import type { ListedTool } from '#gateway';
import type { ServerFacts } from '../request/mcp-request.ts';
import type { Kind } from '../wire/subscriptions.ts';
import type { SearchIndex } from './search-index.ts';

/** A tool as its server lists it. All its texts come from the provider. */
export interface ToolEntry extends ListedTool {
  /** The definition as unchanged JSON text. It has no duplicate keys. */
  readonly text: string;
  readonly inputSchema: JsonObject | null;
}

/** An element of a list. The key is the URI of a resource, the URI template of a template, or the name of a prompt. */
export interface ListedItem {
  readonly key: string;
  /** Unchanged JSON text. It has no duplicate keys. */
  readonly text: string;
}

/** The lists of one offer's server, within the limits. */
export interface ServerListing {
  readonly facts: ServerFacts;
  /** By name, in the server's order. If several tools have one name, the first. */
  readonly tools: ReadonlyMap<string, ToolEntry>;
  readonly resources: readonly ListedItem[];
  readonly resourceTemplates: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  /** The index for the search of tools. */
  readonly index: SearchIndex;
  /** When the lists were read, in epoch milliseconds. */
  readonly fetchedAt: number;
  /** The server lists more than is kept here. */
  readonly truncated: boolean;
  /** Characters of all lists, for the limits. */
  readonly size: number;
  /** A digest for each kind. It is equal if nothing has changed. */
  readonly digests: Readonly<Record<Kind, string>>;
}
