import { createHash } from 'node:crypto';

/** Longest slug. */
const SLUG_MAX = 24;
/** A name that ends like a digest gets a digest too, so that no name equals the digest form of another. */
const LOOKS_DIGESTED = /-[0-9][0-9a-z]{12}$/;
const PART = '[a-z0-9]+(?:-[a-z0-9]+)*';
/** A slug begins a URI scheme (RFC 3986, 3.1), so it begins with a letter. */
const PLAIN = new RegExp(`^(?=[a-z])${PART}(?:/${PART})*$`);

/**
 * The slug of a service: `acme/search` is `acme--search`. A name with other characters, or a long one, gets a readable
 * head and a digest. The slug depends on the name alone, so it is always the same at every gateway and nothing needs to
 * be stored.
 */
export function slugOf(service: string, salt = ''): string {
  const plain = service.replaceAll('/', '--');
  if (salt === '' && PLAIN.test(service) && plain.length <= SLUG_MAX && !LOOKS_DIGESTED.test(plain)) return plain;
  return headOf(service, SLUG_MAX, '-') + digest(salt + service);
}

/**
 * The readable head before the digest of a service's name: words of the name, and the separator. `max`: most
 * characters, with the digest.
 */
export function headOf(service: string, max: number, separator: '-' | '_'): string {
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

/** The name of a key. A non-empty salt gives another name, with a digest. */
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

/** Characters of a digest. */
export const DIGEST = 13;
const TAIL = 36n ** BigInt(DIGEST - 1);

/**
 * A digit, then digits and small letters: 65 bits of a SHA-256, so that nobody can find a name with the same digest as
 * another. The leading digit distinguishes digests from words. The hash is over UTF-16, because texts with different
 * lone surrogates have the same UTF-8.
 */
export function digest(text: string): string {
  const bits = BigInt(`0x${createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, 32)}`);
  return `${(bits / TAIL) % 10n}${(bits % TAIL).toString(36).padStart(DIGEST - 1, '0')}`;
}
