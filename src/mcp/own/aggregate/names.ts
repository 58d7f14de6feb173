import { DIGEST, digest, distinct, headOf } from './slugs.ts';

/**
 * Longest name of a tool or prompt. APIs of models allow 64 characters, and clients add a prefix (`mcp__<server>__`).
 */
export const NAME_MAX = 48;

const PREFIX_MAX = 20;
const SEPARATOR = '__';
/** The characters that the APIs of models take in the name of a tool. */
const PLAIN = /^[A-Za-z0-9_-]+$/;
/** A name that ends like a digest gets a digest too, so that no name equals the digest form of another. */
const LOOKS_DIGESTED = /_[0-9][0-9a-z]{12}$/;
/**
 * Services whose prefix is readable: `search`, `acme/search`, `acme/web-search`. In the prefix, the first `_` stands
 * for `/` and every other one for `-`, so no two services have the same prefix.
 */
const READABLE = /^[a-z][a-z0-9]*(?:\/[a-z0-9]+(?:-[a-z0-9]+)*)?$/;

/**
 * The prefix of a service's tool names: `acme/search` is `acme_search`. A name with other characters, or a long one,
 * gets a readable head and a digest. The prefix depends on the name alone, so it is always the same at every gateway
 * and nothing needs to be stored.
 */
export function prefixOf(service: string, salt = ''): string {
  const plain = service.replaceAll(/[/-]/g, '_');
  if (salt === '' && READABLE.test(service) && plain.length <= PREFIX_MAX && !LOOKS_DIGESTED.test(plain)) return plain;
  return headOf(service, PREFIX_MAX, '_') + digest(salt + service);
}

/**
 * The name of a tool or prompt in the aggregate: `<prefix>__<name>`, of letters, digits, `_` and `-`. A name with other
 * characters, or a long one, gets a readable head and a digest. It depends on prefix and name alone.
 */
export function exposedName(prefix: string, name: string, salt = ''): string {
  const whole = prefix + SEPARATOR + name;
  if (salt === '' && PLAIN.test(name) && whole.length <= NAME_MAX && !LOOKS_DIGESTED.test(name)) return whole;
  return digestedName(prefix, name, salt);
}

/**
 * The name that `exposed` stood for before names kept their `-`: then each name with a `-` had a digest. Null if it
 * stood for none of them. Clients have such names in their lists of allowed tools.
 */
export function nameOfEarlier(exposed: string, prefix: string, names: Iterable<string>): string | null {
  if (!LOOKS_DIGESTED.test(exposed)) return null;
  for (const name of names) if (name.includes('-') && digestedName(prefix, name, '') === exposed) return name;
  return null;
}

function digestedName(prefix: string, name: string, salt: string): string {
  const room = NAME_MAX - prefix.length - SEPARATOR.length;
  const head = name
    .slice(0, NAME_MAX)
    .replaceAll(/[^A-Za-z0-9_]+/g, '_')
    .slice(0, room - DIGEST - 1)
    .replace(/_+$/, '');
  return `${prefix}${SEPARATOR}${head}_${digest(salt + name)}`;
}

/** The exposed names of all tools, or all prompts, of one service, by their own names. All are different. */
export function exposedNames(prefix: string, names: readonly string[]): ReadonlyMap<string, string> {
  return distinct(names, (name, salt) => exposedName(prefix, name, salt));
}

/**
 * Splits an exposed name into its prefix and the rest. A prefix never has two underscores in a row. Null for a name
 * without a prefix.
 */
export function splitName(exposed: string): { readonly prefix: string; readonly rest: string } | null {
  const at = exposed.indexOf(SEPARATOR);
  return at <= 0 ? null : { prefix: exposed.slice(0, at), rest: exposed.slice(at + SEPARATOR.length) };
}
