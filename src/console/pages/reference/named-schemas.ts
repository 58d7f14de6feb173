import { isDeepStrictEqual } from 'node:util';
import { isObject } from '#wire';
import { acceptsNull, mapInner, portable, type Schema, withoutNull } from './portable-schema.ts';

export type NamedSchemas = Record<string, Schema>;

/**
 * Rewrites every schema of an operation in portable words. A schema with a `title` is moved to `names` under that name,
 * and a reference stays. Its description may differ from place to place.
 */
export function nameSchemas<T>(value: T, names: NamedSchemas): T {
  const moved = (schema: Schema): Schema => {
    const inner = mapInner(schema, moved);
    const { title, ...rest } = inner;
    if (typeof title !== 'string') return inner;
    const { description: own, ...words } = withoutNull(rest);
    const known = (names[title] ??= own === undefined ? words : { description: own, ...words });
    const { description, ...others } = known;
    if (!isDeepStrictEqual(words, others)) throw new Error(`Two schemas have the title ${title}`);
    const $ref = `#/components/schemas/${title}`;
    const more = own === description ? {} : { description: own };
    return acceptsNull(rest) ? { anyOf: [{ $ref }, { type: 'null' }], ...more } : { $ref, ...more };
  };
  const walk = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(walk);
    if (!isObject(part)) return part;
    return Object.fromEntries(
      Object.entries(part).map(([name, inner]) => {
        if (name === 'example' || name === 'examples') return [name, inner];
        return [name, name === 'schema' && isObject(inner) ? moved(portable(inner)) : walk(inner)];
      }),
    );
  };
  return walk(value) as T;
}
