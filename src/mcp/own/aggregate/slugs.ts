import { createHash } from 'node:crypto';

/** Longest slug. */
const SLUG_MAX = 24;
/** A name that ends like a digest gets one itself, so that no name is another's digest. */
const LOOKS_DIGESTED = /-[0-9][0-9a-z]{12}$/;
const PART = '[a-z0-9]+(?:-[a-z0-9]+)*';
/** A slug begins a URI scheme (RFC 3986, 3.1), so with a letter. */
const PLAIN = new RegExp(`^(?=[a-z])${PART}(?:/${PART})*$`);

/**
 * The slug of a service: `acme/search` is `acme--search`. A name that has other characters, or is too long, gets a
 * readable head and a digest. The slug depends on the name alone: it is the same at every gateway, at every time, and
 * nothing needs to be stored.
 */
export function slugOf(service: string, salt = ''): string {
  const plain = service.replaceAll('/', '--');
  if (salt === '' && PLAIN.test(service) && plain.length <= SLUG_MAX && !LOOKS_DIGESTED.test(plain)) return plain;
  return headOf(service, SLUG_MAX, '-') + digest(salt + service);
}

/**
 * Up to where the digest of a service's name begins: its last words, and the separator. `max`: characters with the
 * digest.
 */
export function headOf(service: string, max: number, separator: '-' | '_'): string {
  const words = (text: string) =>
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, separator)
      .replace(/^[^a-z]+/, '')
      .slice(0, max - DIGEST - 1)
      .replace(/[-_]$/, '');
  // The name of the provider stands in front of the service's own.
  return `${words(service.slice(service.lastIndexOf('/') + 1)) || words(service) || 's'}${separator}`;
}

/** The name of a key; with a salt another one, which has a digest. */
export type NameOf = (key: string, salt: string) => string;

/** Told of two keys that would have the same name: the first keeps it. */
export type OnShared = (name: string, first: string, later: string) => void;

/**
 * A name for each key. Of keys that would share a name, the first one has it, and each later one takes the next free
 * name: no key loses its name to a later one.
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
 * A digit, then digits and small letters: 65 bits of a SHA-256, so that nobody finds a name with another's digest.
 * The digit in front tells digests from words. It is taken of UTF-16, in which no two texts are the same.
 */
export function digest(text: string): string {
  const bits = BigInt(`0x${createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, 32)}`);
  return `${(bits / TAIL) % 10n}${(bits % TAIL).toString(36).padStart(DIGEST - 1, '0')}`;
}
