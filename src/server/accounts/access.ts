import type { Primitive } from '#config/names';

/** Most patterns of a list, and most characters of one. */
export const PATTERNS_MAX = 100;
export const PATTERN_CHARACTERS_MAX = 256;

/**
 * Rules of what a key may call, as lists of patterns. A call is allowed if each list allows it. A list allows what at
 * least one of its patterns covers and none with a minus does, in whatever order they stand. A pattern covers:
 *
 * - `files`: the service of this name with all that it has,
 * - `files/read`: the tool `read` of the service `files`, or the service of this name,
 * - `files/*`: all that has a name that begins with `files/`, so each tool of `files`, but not its prompts.
 *
 * `model:`, `tool:`, `agent:`, `image:` or `video:` before a pattern limits it to services of this kind. A minus takes
 * a name away in small and capital letters, and in each form of Unicode.
 */
export class Access {
  readonly #patterns: readonly (readonly string[])[];
  /** Without an entry for a kind, no pattern is limited to one. */
  readonly #byKind: ReadonlyMap<Primitive, readonly CompiledList[]>;
  readonly #ofAll: readonly CompiledList[];

  constructor(lists: readonly (readonly string[])[]) {
    this.#patterns = lists;
    this.#ofAll = lists.map((list) => compile(list.map(withoutKind)));
    const hasKinds = lists.some((list) => list.some((pattern) => kindOf(pattern) !== null));
    const ofKind = (kind: Primitive) =>
      lists.map((list) => compile(list.filter((pattern) => (kindOf(pattern) ?? kind) === kind).map(withoutKind)));
    this.#byKind = new Map(hasKinds ? KINDS.map((kind) => [kind, ofKind(kind)]) : []);
  }

  #lists(kind: Primitive | null): readonly CompiledList[] {
    return (kind === null ? undefined : this.#byKind.get(kind)) ?? this.#ofAll;
  }

  /**
   * `operation`: the name of a tool; null for a service as a whole, such as a model, an agent or a resource. `kind` is
   * null for a kept answer of a service of any kind: what is taken away of one kind is taken away.
   */
  allows(kind: Primitive | null, service: string, operation: string | null): boolean {
    return this.#lists(kind).every(
      ({ more, less }) => covers(more, service, operation) && !takes(less, service, operation),
    );
  }

  /**
   * Whether a tool that is allowed has to be one that its server lists by this very name: a server may take other names
   * for the same tool, and so for one that a list does not allow.
   */
  onlyListed(service: string, tool: string): boolean {
    const isOpen = ({ more, less }: CompiledList) =>
      more.exact.has(`${service}/${tool}`) ||
      ((more.exact.has(service) || ends(more, service)) && !opens(less, folded(service)));
    return !this.#lists('tool').every(isOpen);
  }

  /** Whether the service, or at least one tool that it may have, is allowed. */
  reaches(kind: Primitive, service: string): boolean {
    return this.#lists(kind).every(
      ({ more, less }) =>
        (covers(more, service, null) && !takes(less, service, null)) ||
        (opens(more, service) && !ends(less, folded(service))),
    );
  }

  /**
   * Whether a list has a pattern for it other than `*`. `operation`: undefined for anything that the service may have.
   */
  names(kind: Primitive, service: string, operation?: string | null): boolean {
    return this.#lists(kind).some(({ names }) =>
      operation === undefined
        ? covers(names, service, null) || opens(names, service)
        : covers(names, service, operation),
    );
  }

  toString(): string {
    const shownPatterns = this.#patterns.map((patterns) => patterns.slice(0, SHOWN_MAX).join(', '));
    return shownPatterns.join(', and its member to: ');
  }
}

const SHOWN_MAX = 20;

interface Offered {
  readonly service: string;
  readonly primitive: Primitive;
}

/** A catalogue with the offers of services of which something is allowed; `access` null: all. */
export function offersWithin<P extends string, T extends Offered>(
  catalog: { offers(primitive?: P): readonly T[] },
  access: Access | null,
): { offers(primitive?: P): readonly T[] } {
  if (access === null) return catalog;
  const permits = ({ primitive, service }: Offered) =>
    primitive === 'tool' ? access.reaches(primitive, service) : access.allows(primitive, service, null);
  return { offers: (primitive) => catalog.offers(primitive).filter(permits) };
}

/** The rules of all these lists together. null in a list, and null as the result: everything is allowed. */
export function accessOf(...lists: readonly (readonly string[] | null)[]): Access | null {
  const limiting = lists.filter((list) => list !== null);
  return limiting.length === 0 ? null : new Access(limiting);
}

/** Says what is wrong with a list of patterns, as words that follow its name, and where. null for a right one. */
export function patternsFault(
  patterns: readonly string[],
): { readonly at: number | null; readonly text: string } | null {
  for (const [at, pattern] of patterns.entries()) {
    const text = patternFault(pattern);
    if (text !== null) return { at, text };
  }
  if (patterns.some((pattern) => !pattern.startsWith(MINUS))) return null;
  return { at: null, text: 'takes away without giving anything. Add "*" for everything else' };
}

function patternFault(pattern: string): string | null {
  const name = nameInPattern(pattern);
  const example = 'such as files, files/read, files/*, tool:files or -files/delete';
  if (name === '' || name.startsWith('/')) return `must name a service or its tool, ${example}`;
  if (name.startsWith(MINUS)) return `must begin with one "-" at most, ${example}`;
  if (name.endsWith('/')) return `must not end in "/". Write ${pattern}* for all tools of ${name.slice(0, -1)}`;
  if (name.slice(0, -1).includes(ANY)) return `may have a "*" only at its end, ${example}`;
  return name.trim() === name ? null : `must not begin or end with a space, ${example}`;
}

/** PRIMITIVES, whose file a command that only reads patterns does not load. */
const KINDS = Object.keys({ model: 0, tool: 0, agent: 0, image: 0, video: 0 } satisfies Record<
  Primitive,
  0
>) as readonly Primitive[];

const MINUS = '-';
const ANY = '*';

/** The name in a pattern, which may be a beginning. */
export const nameInPattern = (pattern: string): string => withoutMinus(withoutKind(pattern));

const withoutMinus = (pattern: string): string => (pattern.startsWith(MINUS) ? pattern.slice(1) : pattern);

/** The kind that a pattern begins with. null: it is for all kinds. */
const kindOf = (pattern: string): Primitive | null =>
  KINDS.find(
    (kind) =>
      withoutMinus(pattern)
        .slice(0, kind.length + 1)
        .toLowerCase() === `${kind}:`,
  ) ?? null;

const withoutKind = (pattern: string): string => {
  const kind = kindOf(pattern);
  if (kind === null) return pattern;
  const name = withoutMinus(pattern).slice(kind.length + 1);
  return pattern.startsWith(MINUS) ? MINUS + name : name;
};

interface CompiledPatterns {
  readonly exact: ReadonlySet<string>;
  /** All that stands before a "/" of an exact pattern: the services of which it may name a tool. */
  readonly above: ReadonlySet<string>;
  /** The patterns with a "*", without it. */
  readonly beginnings: readonly string[];
}

interface CompiledList {
  readonly more: CompiledPatterns;
  /** Those of `more` without the pattern for everything. */
  readonly names: CompiledPatterns;
  /** Of folded names. */
  readonly less: CompiledPatterns;
}

const folded = (name: string): string => name.normalize('NFKC').toLowerCase();

const compile = (patterns: readonly string[]): CompiledList => ({
  names: compiled(patterns.filter((pattern) => pattern !== ANY && !pattern.startsWith(MINUS))),
  more: compiled(patterns.filter((pattern) => !pattern.startsWith(MINUS))),
  less: compiled(patterns.filter((pattern) => pattern.startsWith(MINUS)).map((pattern) => folded(pattern.slice(1)))),
});

function compiled(patterns: readonly string[]): CompiledPatterns {
  const exact = new Set<string>();
  const above = new Set<string>();
  const beginnings: string[] = [];
  for (const pattern of patterns) {
    if (pattern.endsWith(ANY)) {
      beginnings.push(pattern.slice(0, -1));
      continue;
    }
    exact.add(pattern);
    for (let at = pattern.indexOf('/'); at !== -1; at = pattern.indexOf('/', at + 1)) above.add(pattern.slice(0, at));
  }
  return { exact, above, beginnings };
}

function covers({ exact, beginnings }: CompiledPatterns, service: string, operation: string | null): boolean {
  if (exact.has(service)) return true;
  const name = operation === null ? service : `${service}/${operation}`;
  return (operation !== null && exact.has(name)) || beginnings.some((beginning) => name.startsWith(beginning));
}

const takes = (less: CompiledPatterns, service: string, operation: string | null): boolean =>
  (less.exact.size > 0 || less.beginnings.length > 0) &&
  covers(less, folded(service), operation === null ? null : folded(operation));

/** Whether the patterns cover a tool that the service may have. */
function opens({ exact, above, beginnings }: CompiledPatterns, service: string): boolean {
  if (exact.has(service) || above.has(service)) return true;
  const tools = `${service}/`;
  return beginnings.some((beginning) => tools.startsWith(beginning) || beginning.startsWith(tools));
}

/** Whether the patterns cover every tool that the service may have. */
const ends = ({ exact, beginnings }: CompiledPatterns, service: string): boolean =>
  exact.has(service) || beginnings.some((beginning) => `${service}/`.startsWith(beginning));
