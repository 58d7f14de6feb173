/** A tool as the client named it. */
interface NamedTool {
  readonly name: string;
  /** null for a tool outside of namespaces. */
  readonly namespace: string | null;
  /** The tool takes one text instead of arguments. */
  readonly custom: boolean;
}

const NAME_MAX = 64;
/** Characters that a name of a function must not have. */
const OTHER = /[^A-Za-z0-9_-]/g;

/** Maps the tools of a request to names for a chat model, and back. */
export interface ToolRegistry {
  /** The name for the model. A new tool gets a new name. */
  short(name: string, namespace: string | null, custom?: boolean): string;
  /** The tool as the client named it. An unknown name counts as a function. */
  named(short: string): NamedTool;
}

export function createToolRegistry(): ToolRegistry {
  const shorts = new Map<string, string>();
  const tools = new Map<string, NamedTool>();
  /** The next number to append to a name that is already taken. */
  const numbers = new Map<string, number>();
  return {
    short(name, namespace, custom = false) {
      const id = JSON.stringify([namespace, name]);
      const known = shorts.get(id);
      if (known !== undefined) return known;
      const whole = (namespace === null ? name : `${namespace}__${name}`).replaceAll(OTHER, '_');
      const cut = whole.slice(0, NAME_MAX);
      let short = cut;
      let number = numbers.get(cut) ?? 2;
      for (; tools.has(short); number++) short = `${whole.slice(0, NAME_MAX - String(number).length - 1)}_${number}`;
      numbers.set(cut, number);
      shorts.set(id, short);
      tools.set(short, { name, namespace, custom });
      return short;
    },
    named: (short) => tools.get(short) ?? { name: short, namespace: null, custom: false },
  };
}
