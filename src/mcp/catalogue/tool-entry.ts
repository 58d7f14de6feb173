import { isObject, type JsonObject, membersOf } from '#wire';
import type { ToolDefinition } from '#gateway';
import { definitionHash, hasRemoteRef } from './definition.ts';
import type { ToolEntry } from './listing.ts';

/** A tool that was read but has no pin yet. */
export interface ReadTool {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly text: string;
  readonly sha256: string;
  readonly remoteRef: boolean;
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

/** The entry of a tool, with the version of its definition. */
export function toEntry(
  { sha256, remoteRef, ...tool }: ReadTool,
  pin: Pick<ToolDefinition, 'version' | 'changedAt'>,
): ToolEntry {
  return new Tool(tool, { sha256, version: pin.version, changedAt: pin.changedAt, remoteRef });
}

/**
 * A schema is parsed on demand, and only weakly referenced. Parsed schemas take ten times the memory of their text, and
 * the provider decides how many it lists.
 */
class Tool implements ToolEntry {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly text: string;
  readonly definition: ToolDefinition;
  #schema: WeakRef<JsonObject> | null = null;

  constructor(
    { name, title, description, text }: Pick<ReadTool, 'name' | 'title' | 'description' | 'text'>,
    definition: ToolDefinition,
  ) {
    this.name = name;
    this.title = title;
    this.description = description;
    this.text = text;
    this.definition = definition;
  }

  get inputSchema(): JsonObject | null {
    const known = this.#schema?.deref();
    if (known) return known;
    const member = membersOf(this.text).get('inputSchema');
    const schema: unknown = member && JSON.parse(this.text.slice(member.start, member.end));
    if (!isObject(schema)) return null;
    this.#schema = new WeakRef(schema);
    return schema;
  }
}
