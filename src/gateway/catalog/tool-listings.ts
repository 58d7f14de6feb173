import type { Offer } from '../call.ts';

/** The definition of a tool, which is a stranger's word, and whether it is still what it was. */
export interface ToolDefinition {
  /** In hex. */
  readonly sha256: string;
  /** Counts the definitions that the tool has had; null where none is noted. */
  readonly version: number | null;
  /** Epoch milliseconds; null where it has not changed. */
  readonly changedAt: number | null;
  /** A schema of it refers to another document, which is never fetched. */
  readonly remoteRef: boolean;
}

/** A tool as its server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly title: string | null;
  /** May be empty. */
  readonly description: string;
  /** JSON Schema as it was parsed; the same object each time. */
  readonly inputSchema: unknown;
  readonly definition: ToolDefinition;
}

/** The tools that the servers of tool offers list, as the tools' protocol knows them. */
export interface ToolListings {
  /** null where it is not known. */
  toolsOf(offer: Offer): readonly ListedTool[] | null;
  /** Grows with every change. */
  version(): number;
}

/** A definition as clients see it, beside the tool: `changed_at` is there once it has changed. */
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
