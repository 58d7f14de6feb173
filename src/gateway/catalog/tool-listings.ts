import type { Offer } from '../call.ts';

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

/** A tool from its server's list. */
export interface ListedTool {
  readonly name: string;
  readonly title: string | null;
  /** May be empty. */
  readonly description: string;
  /** Parsed JSON Schema; the same object each time. */
  readonly inputSchema: unknown;
  readonly definition: ToolDefinition;
}

/** The tools that the servers of tool offers list, from the protocol of the tools. */
export interface ToolListings {
  /** null if the list is not known. */
  toolsOf(offer: Offer): readonly ListedTool[] | null;
  /** Increases with every change. */
  version(): number;
}

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
