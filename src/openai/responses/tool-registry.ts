/** A tool as the client named it. */
interface NamedTool {
  readonly name: string;
  /** null for a tool outside of namespaces. */
  readonly namespace: string | null;
  /** It takes one text in place of arguments. */
  readonly custom: boolean;
}

const NAME_MAX = 64;
/** Characters that names of functions have not. */
const OTHER = /[^A-Za-z0-9_-]/g;

/** Tools of a request by the names that a chat model knows them by. */
export interface ToolRegistry {
  /** The name for the model; made where the tool is new. */
  short(name: string, namespace: string | null, custom?: boolean): string;
  /** The client's names for it. A name that nobody gave is a function's. */
  named(short: string): NamedTool;
}

export function createToolRegistry(): ToolRegistry {
  const shorts = new Map<string, string>();
  const tools = new Map<string, NamedTool>();
  /** The number that a name which is taken goes on with. */
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
