/** A schema, as far as tests look into it. */
interface Part {
  readonly [member: string]: unknown;
}

/**
 * Reads `/openapi.json`, and puts in place of each reference what it refers to. A description beside a reference
 * replaces that of the part.
 */
export async function readOpenApi<T>(origin: string): Promise<T> {
  const response = await fetch(`${origin}/openapi.json`);
  return withoutReferences((await response.json()) as Part) as T;
}

/** The same for a document that was read. It has no circles, so this ends. */
export function withoutReferences(document: Part): unknown {
  const known = new Map<string, unknown>();
  const whole = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(whole);
    if (typeof part !== 'object' || part === null) return part;
    const { $ref: ref, ...beside } = part as Part;
    if (typeof ref !== 'string')
      return Object.fromEntries(Object.entries(part).map(([name, one]) => [name, whole(one)]));
    if (!known.has(ref)) known.set(ref, whole(partAt(document, ref)));
    return { ...(known.get(ref) as Part), ...beside };
  };
  return whole(document);
}

/** What a reference leads to. Throws if it leads nowhere. */
export function partAt(document: Part, ref: string): unknown {
  let at: unknown = document;
  for (const name of ref.slice(2).split('/')) at = (at as Part | undefined)?.[name.replaceAll('~1', '/')];
  if (at === undefined) throw new Error(`${ref} leads nowhere`);
  return at;
}
