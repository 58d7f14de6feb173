import type { Speakers } from '#gateway';

const PREFIX = 'anthropic/';

/**
 * The model that a name stands for. Some clients list models of Anthropic alone, by the beginning of their names, so
 * `anthropic/<name>` is another name of `<name>`, unless there is a model of exactly that name.
 */
export function withoutAlias(name: string, { model }: Partial<Speakers>): string {
  if (!name.startsWith(PREFIX) || model?.has(name)) return name;
  const rest = name.slice(PREFIX.length);
  return model?.has(rest) || isBridged(rest) ? rest : name;
}

/** An agent or a tool in the place of a model. */
export const isBridged = (name: string): boolean => name.startsWith('a2a/') || name.startsWith('mcp/');
