import type { JsonObject } from '#wire';
import type { ListedTool } from '#gateway';
import type { ServerFacts } from '../turn/turn.ts';
import type { Kind } from '../wire/subscriptions.ts';
import type { SearchIndex } from './search-index.ts';

/** A tool as its server lists it: all of it is a stranger's text. */
export interface ToolEntry extends ListedTool {
  /** The definition, JSON text as it came. No key of it stands twice. */
  readonly text: string;
  readonly inputSchema: JsonObject | null;
}

/** A resource by its URI, a template by its URI template, a prompt by its name. */
export interface ListedItem {
  readonly key: string;
  /** JSON text as it came. No key of it stands twice. */
  readonly text: string;
}

/** The lists of one offer's server, within the caps. */
export interface ServerListing {
  readonly facts: ServerFacts;
  /** By name, in the server's order. Of several with one name, the first. */
  readonly tools: ReadonlyMap<string, ToolEntry>;
  readonly resources: readonly ListedItem[];
  readonly resourceTemplates: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  /** Finds tools by words. */
  readonly index: SearchIndex;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** The server lists more than this. */
  readonly truncated: boolean;
  /** Characters that it holds, for the caps. */
  readonly size: number;
  /** Of each kind, a digest: equal where nothing has changed. */
  readonly digests: Readonly<Record<Kind, string>>;
}
