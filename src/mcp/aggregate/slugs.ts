import { createHash } from 'node:crypto';

/** Longest slug. */
const SLUG_MAX = 16;
const DIGEST = 6;
/** What ends in a digest is never taken as it is, so that no name is another's digest. */
const LOOKS_DIGESTED = /-[0-9a-f]{6}$/;
const PART = '[a-z0-9]+(?:-[a-z0-9]+)*';
/** A slug begins a URI scheme (RFC 3986, 3.1), so with a letter. */
const PLAIN = new RegExp(`^(?=[a-z])${PART}(?:/${PART})*$`);

/**
 * The slug of a service: `acme/search` is `acme--search`; a name that has other characters or is too long is a readable head and a digest. Nothing
 * but the name is in it, so that it is the same at every gateway, at every time, and whichever services there are; and nothing needs to be stored.
 */
export function slugOf(service: string, salt = ''): string {
  const plain = service.replaceAll('/', '--');
  if (salt === '' && PLAIN.test(service) && plain.length <= SLUG_MAX && !LOOKS_DIGESTED.test(plain)) return plain;
  const words = (text: string) =>
    text
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/^[^a-z]+/, '')
      .slice(0, SLUG_MAX - DIGEST - 1)
      .replace(/-+$/, '');
  // What a service does stands behind whose it is.
  const head = words(service.slice(service.lastIndexOf('/') + 1)) || words(service) || 's';
  return `${head}-${digest(salt + service, DIGEST)}`;
}

/**
 * The slugs of services, each its own. Where two digests are the same (one in 16 million), those services take others, found from their names
 * alone: neither is ever called by what was the other's.
 */
export function slugsOf(services: readonly string[]): ReadonlyMap<string, string> {
  return distinct(services, slugOf);
}

/** A name for each key: of those that would share one, all take the next that nobody has. */
export function distinct(keys: readonly string[], nameOf: (key: string, salt: string) => string): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const groups = Map.groupBy(keys, (key) => nameOf(key, ''));
  const taken = new Set(groups.keys());
  for (const [name, group] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (group.length === 1) names.set(group[0]!, name);
    else
      for (const key of group.toSorted()) {
        let other = name;
        for (let salt = 1; taken.has(other); salt++) other = nameOf(key, `${salt} `);
        taken.add(other);
        names.set(key, other);
      }
  }
  return names;
}

/** Of UTF-16, in which every text is its own. */
export function digest(text: string, length: number): string {
  return createHash('sha256').update(text, 'utf16le').digest('hex').slice(0, length);
}
