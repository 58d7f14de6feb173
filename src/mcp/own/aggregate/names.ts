// The names of tools, prompts and resources in the aggregate. Each is made of the service's name and the service's own
// name for it, so nothing needs to be stored.

import { createHash } from 'node:crypto';

/**
 * Longest name of a tool or prompt. APIs of models allow 64 characters, and clients add a prefix (`mcp__<server>__`).
 */
const NAME_MAX = 48;

const PREFIX_MAX = 20;
const SEPARATOR = '__';
/** The characters that the APIs of models take in the name of a tool. */
const PLAIN_NAME = /^[A-Za-z0-9_-]+$/;
/** A name that ends like a digest gets a digest too, so that no name equals the digest form of another. */
const NAME_LOOKS_DIGESTED = /_[0-9][0-9a-z]{12}$/;
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
  if (salt === '' && READABLE.test(service) && plain.length <= PREFIX_MAX && !NAME_LOOKS_DIGESTED.test(plain))
    return plain;
  return headOf(service, PREFIX_MAX, '_') + digest(salt + service);
}

/**
 * The name of a tool or prompt in the aggregate: `<prefix>__<name>`, of letters, digits, `_` and `-`. A name with other
 * characters, or a long one, gets a readable head and a digest. It depends on prefix and name alone.
 */
export function exposedName(prefix: string, name: string, salt = ''): string {
  const whole = prefix + SEPARATOR + name;
  if (salt === '' && PLAIN_NAME.test(name) && whole.length <= NAME_MAX && !NAME_LOOKS_DIGESTED.test(name)) return whole;
  return digestedName(prefix, name, salt);
}

/**
 * The name that `exposed` stood for before names kept their `-`: then each name with a `-` had a digest. Null if it
 * stood for none of them. Clients have such names in their lists of allowed tools.
 */
export function nameOfEarlier(exposed: string, prefix: string, names: Iterable<string>): string | null {
  if (!NAME_LOOKS_DIGESTED.test(exposed)) return null;
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

const SLUG_MAX = 24;
/** A name that ends like a digest gets a digest too, so that no name equals the digest form of another. */
const SLUG_LOOKS_DIGESTED = /-[0-9][0-9a-z]{12}$/;
const PART = '[a-z0-9]+(?:-[a-z0-9]+)*';
/** A slug begins a URI scheme (RFC 3986, 3.1), so it begins with a letter. */
const PLAIN_SERVICE = new RegExp(`^(?=[a-z])${PART}(?:/${PART})*$`);

/**
 * The slug of a service: `acme/search` is `acme--search`. A name with other characters, or a long one, gets a readable
 * head and a digest. The slug depends on the name alone, so it is always the same at every gateway and nothing needs to
 * be stored.
 */
export function slugOf(service: string, salt = ''): string {
  const plain = service.replaceAll('/', '--');
  if (salt === '' && PLAIN_SERVICE.test(service) && plain.length <= SLUG_MAX && !SLUG_LOOKS_DIGESTED.test(plain))
    return plain;
  return headOf(service, SLUG_MAX, '-') + digest(salt + service);
}

/**
 * The readable head before the digest of a service's name: words of the name, and the separator. `max`: most
 * characters, with the digest.
 */
function headOf(service: string, max: number, separator: '-' | '_'): string {
  const words = (text: string) =>
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, separator)
      .replace(/^[^a-z]+/, '')
      .slice(0, max - DIGEST - 1)
      .replace(/[-_]$/, '');
  // The service's own words come after the provider's name, and say more.
  return `${words(service.slice(service.lastIndexOf('/') + 1)) || words(service) || 's'}${separator}`;
}

export type NameOf = (key: string, salt: string) => string;

/** Called with two keys that would have the same name. The first key keeps it. */
export type OnShared = (name: string, first: string, later: string) => void;

/**
 * A name for each key. If keys would have the same name, the first one gets it. Each later key gets the next free name,
 * so that no key loses its name to a later one.
 */
export function distinct(keys: readonly string[], nameOf: NameOf, onShared?: OnShared): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  for (const key of keys) {
    let name = nameOf(key, '');
    const first = owners.get(name);
    if (first !== undefined) onShared?.(name, first, key);
    for (let salt = 1; owners.has(name); salt++) name = nameOf(key, `${salt} `);
    owners.set(name, key);
  }
  return new Map([...owners].map(([name, key]) => [key, name]));
}

const DIGEST = 13;
const TAIL = 36n ** BigInt(DIGEST - 1);

/**
 * A digit, then digits and small letters: 65 bits of a SHA-256, so that nobody can find a name with the same digest as
 * another. The leading digit distinguishes digests from words. The hash is over UTF-16, because texts with different
 * lone surrogates have the same UTF-8.
 */
function digest(text: string): string {
  const bits = BigInt(`0x${createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, 32)}`);
  return `${(bits / TAIL) % 10n}${(bits % TAIL).toString(36).padStart(DIGEST - 1, '0')}`;
}

/** Hosts recognise by this scheme what they must render. */
const UI = 'ui://';

/**
 * A service's URI, or URI template, in the aggregate: `<slug>+<uri>`. `ui://…` keeps its scheme and becomes
 * `ui://<slug>/…`.
 */
export function exposeUri(slug: string, uri: string): string {
  return uri.startsWith(UI) ? `${UI}${slug}/${uri.slice(UI.length)}` : `${slug}+${uri}`;
}

/**
 * The slug of an exposed URI, and the service's own URI; null for a URI without a slug. A slug has neither `+` nor `/`.
 */
export function splitUri(exposed: string): { readonly slug: string; readonly uri: string } | null {
  const ui = exposed.startsWith(UI);
  const from = ui ? UI.length : 0;
  const at = exposed.indexOf(ui ? '/' : '+', from);
  if (at <= from) return null;
  const rest = exposed.slice(at + 1);
  return { slug: exposed.slice(from, at), uri: ui ? UI + rest : rest };
}
