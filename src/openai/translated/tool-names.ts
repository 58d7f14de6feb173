import { functionName } from '../tool-loop/server-tools.ts';

/** A tool as the client named it. */
interface NamedTool {
  readonly name: string;
  /** null for a tool outside of namespaces. */
  readonly namespace: string | null;
  /** The tool takes one text instead of arguments. */
  readonly custom: boolean;
}

/** Translates the names of the tools of a request to names that a chat model takes, and back. */
export class ToolNames {
  readonly #shorts = new Map<string, string>();
  readonly #tools = new Map<string, NamedTool>();

  /** The name for the model. A tool has the same one in the whole request: in its list, its history and its choice. */
  short(name: string, namespace: string | null = null, custom = false): string {
    const key = namespace === null ? name : JSON.stringify([namespace, name]);
    const known = this.#shorts.get(key);
    if (known !== undefined) return known;
    const short = functionName(namespace === null ? name : `${namespace}__${name}`, key, this.#tools);
    this.#shorts.set(key, short);
    this.#tools.set(short, { name, namespace, custom });
    return short;
  }

  /** The tool of a name that a model called. An unknown name counts as a function. */
  toolOf(short: string): NamedTool {
    return this.#tools.get(short) ?? { name: short, namespace: null, custom: false };
  }

  long(short: string): string {
    return this.#tools.get(short)?.name ?? short;
  }
}
