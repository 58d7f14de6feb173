import { SERVICE_NAME_MAX, UNPRINTABLE } from '#wire';

/** Suffixes that choose how a provider is picked; a service's own name cannot end in one. */
export const SORT_SUFFIXES = { ':floor': 'price', ':nitro': 'throughput' } as const;

const SERVICE_NAME = /^[A-Za-z0-9._/:-]{1,128}$/;
const PROVIDER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?$/;
/** A base58 Ed25519 key or an EVM address before the first colon: the direct form of another provider's service. */
const DIRECT_FORM = /^(?:[1-9A-HJ-NP-Za-km-z]{32,44}|0[xX][0-9A-Fa-f]{40}):/;
/**
 * A key in any case, as names are compared without regard to case: a name that is another provider's key would be
 * chosen in its place.
 */
const PUBLIC_KEY = /^(?:[1-9A-Z]{32,44}|0x[0-9a-f]{40})$/i;
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['prototype', ...Object.getOwnPropertyNames(Object.prototype)]);

/** True for names that every object has, which a lookup by name would find. */
export function isPrototypeName(name: string): boolean {
  return PROTOTYPE_NAMES.has(name);
}

/**
 * Says what is wrong with a service's name; null for a right one. Names travel in URLs, headers and keys, and must
 * not be taken for another service's.
 */
export function serviceNameFault(name: string): string | null {
  if (!SERVICE_NAME.test(name)) return `must be 1 to ${SERVICE_NAME_MAX} characters of A-Z a-z 0-9 . _ / : -`;
  if (name.includes('..') || name.includes('//')) return 'must not contain ".." or "//"';
  if (/^[/:]|[/:]$/.test(name)) return 'must not begin or end with "/" or ":"';
  if (name.split('/').some((part) => part === '.' || PROTOTYPE_NAMES.has(part)))
    return 'must not be a reserved word such as "constructor"';
  const suffix = Object.keys(SORT_SUFFIXES).find((reserved) => name.endsWith(reserved));
  if (suffix) return `must not end in "${suffix}", which consumers append to choose a provider`;
  if (DIRECT_FORM.test(name)) return 'must not begin with a public key, which is the direct form of a name';
  return null;
}

/**
 * Prefixes by which a door names the services of other protocols (`a2a/weather` at the door of chat), by the table
 * of blocks that the door serves itself.
 */
const BRIDGED: Readonly<Record<string, readonly string[]>> = {
  models: ['a2a/', 'mcp/'],
  tools: ['a2a/', 'model/'],
  agents: ['mcp/', 'model/'],
};

/**
 * Says what is wrong with a name that a provider who dials in gives to a service of a table; null for a right one. A
 * wrong one would be called in the place of another provider's.
 */
export function claimedNameFault(table: string, name: string): string | null {
  const prefix = (Object.hasOwn(BRIDGED, table) ? BRIDGED[table]! : []).find((one) => name.startsWith(one));
  return prefix === undefined
    ? null
    : `begins with "${prefix}", by which others' services are called at the same address`;
}

/**
 * Says what is wrong with a provider's name; null for a right one. It is sent in the `x-provider` header and compared
 * without regard to case.
 */
export function providerNameFault(name: string): string | null {
  if (!PROVIDER_NAME.test(name))
    return 'must be 1 to 64 characters of A-Z a-z 0-9 space . _ -, beginning with a letter or digit';
  if (name.includes('..')) return 'must not contain ".."';
  if (PROTOTYPE_NAMES.has(name)) return 'must not be a reserved word such as "constructor"';
  if (PUBLIC_KEY.test(name)) return 'must not look like a public key, by which consumers choose a provider';
  return null;
}

/** Says what is wrong with a name that people read; null for a right one. */
export function displayNameFault(name: string): string | null {
  if (name.length === 0 || name.length > 200) return 'must be 1 to 200 characters';
  if (UNPRINTABLE.test(name)) return 'must not contain control or text-direction characters';
  if (name.trim() !== name) return 'must not begin or end with a space';
  return null;
}
