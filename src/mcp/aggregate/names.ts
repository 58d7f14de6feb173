import { digest, distinct } from './slugs.ts';

/** Longest name of a tool or prompt: clients allow 64, and some put words of their own before it. */
export const NAME_MAX = 60;

const SEPARATOR = '__';
const DIGEST = 6;
const PLAIN = /^[A-Za-z0-9_-]+$/;
/** What ends in a digest is never taken as it is, so that no name is another's digest. */
const LOOKS_DIGESTED = /_[0-9a-f]{6}$/;

/**
 * What a tool or prompt of a service is called in the aggregate: `<slug>__<name>`. A name that has characters which models' APIs refuse, or is too
 * long, is a readable head and a digest. Nothing but slug and name is in it.
 */
export function exposedName(slug: string, name: string, salt = ''): string {
  const room = NAME_MAX - slug.length - SEPARATOR.length;
  if (salt === '' && PLAIN.test(name) && name.length <= room && !LOOKS_DIGESTED.test(name)) return slug + SEPARATOR + name;
  const head = name
    .slice(0, NAME_MAX)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
    .slice(0, room - DIGEST - 1);
  return `${slug}${SEPARATOR}${head}_${digest(salt + name, DIGEST)}`;
}

/** The exposed names of all tools, or all prompts, of one service, by their own; each is its own. */
export function exposedNames(slug: string, names: readonly string[]): ReadonlyMap<string, string> {
  return distinct(names, (name, salt) => exposedName(slug, name, salt));
}

/** The slug that an exposed name begins with, and the rest. A slug has no underscore. null for a name that is none. */
export function splitName(exposed: string): { readonly slug: string; readonly rest: string } | null {
  const at = exposed.indexOf(SEPARATOR);
  return at <= 0 ? null : { slug: exposed.slice(0, at), rest: exposed.slice(at + SEPARATOR.length) };
}
