import { createHash } from 'node:crypto';
import type { Members } from '#wire';

/** The members that a model is told of: they define a tool. Icons, `execution` and `_meta` do not. */
const DEFINING = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

/**
 * SHA-256, in hex, of the JSON object of the defining members, in this order and without white space between them,
 * each value as it is written. `members` are those of the tool in `text`.
 */
export function definitionHash(text: string, members: Members): string {
  const hash = createHash('sha256');
  let before = '{';
  for (const key of DEFINING) {
    const member = members.get(key);
    if (!member) continue;
    hash.update(`${before}"${key}":${text.slice(member.start, member.end)}`);
    before = ',';
  }
  return hash.update(before === '{' ? '{}' : '}').digest('hex');
}

/**
 * Whether a schema refers to another document. Only `#…` is local. Such a reference is never followed: it is an
 * address that a stranger chose. Data that looks like one, in a `default` or an `enum`, counts as well.
 */
export function hasRemoteRef(schema: unknown): boolean {
  const open: unknown[] = [schema];
  while (open.length > 0) {
    const node = open.pop();
    if (typeof node !== 'object' || node === null) continue;
    if (!Array.isArray(node))
      for (const key of ['$ref', '$dynamicRef', '$recursiveRef'])
        if (Object.hasOwn(node, key)) {
          const target: unknown = (node as Readonly<Record<string, unknown>>)[key];
          if (typeof target === 'string' && !target.startsWith('#')) return true;
        }
    for (const child of Object.values(node as Readonly<Record<string, unknown>>)) open.push(child);
  }
  return false;
}
