import { ALIAS_PREFIX } from '#config';
import type { TargetAdapters } from '#bridge';

/* Names in a request of another wire: aliases of models, and addresses of tool services. */

/**
 * Resolves an alias. Some clients show only models whose names begin like those of Anthropic. So `anthropic/<name>`
 * is an alias of `<name>`, unless a model has exactly that name.
 */
export const withoutAlias = (name: string, { model }: Partial<TargetAdapters>): string =>
  modelOfAlias(name, (one) => model?.has(one) === true);

/** The model that an alias means. `isModel`: whether a model of a name exists. */
export function modelOfAlias(name: string, isModel: (name: string) => boolean): string {
  if (!name.startsWith(ALIAS_PREFIX) || isModel(name)) return name;
  const rest = name.slice(ALIAS_PREFIX.length);
  return isModel(rest) || isBridged(rest) ? rest : name;
}

/** Names that clients of Anthropic's API show from a list. */
const KEPT = /^(?:claude|anthropic)/i;

/** The name under which clients of Anthropic's API show a model. `isModel`: whether a model of a name exists. */
export function aliasOf(name: string, isModel: (name: string) => boolean): string {
  const alias = ALIAS_PREFIX + name;
  return KEPT.test(name) || isModel(alias) ? name : alias;
}

/** Whether a name means an agent or a tool instead of a model. */
export const isBridged = (name: string): boolean => name.startsWith('a2a/') || name.startsWith('mcp/');

const PATH = /^(?:\/api\/v1)?\/mcp\/(.+)$/;

/**
 * The service in an MCP address of this gateway; null for another address. `hosts`: the hosts of the gateway; null
 * for an unknown one.
 */
export function serviceAtAddress(url: string, hosts: readonly (string | null)[]): string | null {
  const parsed = URL.parse(url);
  if (parsed === null || !hosts.includes(parsed.host)) return null;
  const service = PATH.exec(parsed.pathname)?.[1];
  if (service === undefined) return null;
  try {
    return decodeURI(service);
  } catch {
    return null;
  }
}

/** The host of the gateway's own address; null without one. */
export const hostOfUrl = (url: string | null | undefined): string | null =>
  url ? (URL.parse(url)?.host ?? null) : null;
