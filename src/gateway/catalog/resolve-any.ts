import { GatewayError } from '#wire';
import type { Primitive } from '#config';
import type { Catalog, Resolved } from './catalog.ts';

/** Those of several names that are offered, in their order. Throws the GatewayError of the first where none is. */
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
