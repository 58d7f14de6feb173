import type { Speakers } from '#gateway';

const PREFIX = 'anthropic/';

/**
 * The model that a name stands for. Some clients list models of Anthropic alone, by the beginning of their names, so
 * `anthropic/<name>` is another name of `<name>`, unless there is a model of exactly that name.
 */
export const withoutAlias = (name: string, { model }: Partial<Speakers>): string =>
  modelOfAlias(name, (one) => model?.has(one) === true);

/** The same. `isModel`: whether there is a model of a name. */
export function modelOfAlias(name: string, isModel: (name: string) => boolean): string {
  if (!name.startsWith(PREFIX) || isModel(name)) return name;
  const rest = name.slice(PREFIX.length);
  return isModel(rest) || isBridged(rest) ? rest : name;
}

/** Names that clients of Anthropic's API keep of a list. */
const KEPT = /^(?:claude|anthropic)/i;

/** The name by which such clients keep a model. `isModel`: whether there is a model of a name. */
export function aliasOf(name: string, isModel: (name: string) => boolean): string {
  const alias = PREFIX + name;
  return KEPT.test(name) || isModel(alias) ? name : alias;
}

/** An agent or a tool in the place of a model. */
export const isBridged = (name: string): boolean => name.startsWith('a2a/') || name.startsWith('mcp/');
