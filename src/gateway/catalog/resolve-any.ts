import { GatewayError } from '#wire';
import type { Primitive } from '#config';
import type { Catalog, Resolved } from './catalog.ts';

/** The names that resolve to offers, in their order. If no name does, throws the GatewayError of the first. */
export function resolveAny(
  catalog: Pick<Catalog, 'resolve'>,
  names: readonly string[],
  primitive: Primitive,
): readonly Resolved[] {
  if (names.length === 1) return [catalog.resolve(names[0]!, primitive)];
  const found: Resolved[] = [];
  let missing: GatewayError | null = null;
  for (const name of names) {
    try {
      found.push(catalog.resolve(name, primitive));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      missing ??= error;
    }
  }
  if (found.length === 0 && missing !== null) throw missing;
  return found;
}
