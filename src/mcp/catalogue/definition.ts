import { createHash } from 'node:crypto';
import type { Members } from '#wire';

/**
 * The members that a model gets, so these define a tool. Icons, `execution` and `_meta` are not part of the definition.
 */
const DEFINING = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

/**
 * SHA-256, in hex, of a JSON object with the defining members. They are in the order of DEFINING, without white space
 * between them, and each value is unchanged text. `members` are those of the tool in `text`.
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
 * Whether a schema refers to another document. Only `#…` is local. The gateway never follows such a reference, because
 * the provider chose its address. Data in a `default` or an `enum` that looks like a reference counts too.
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
