import type { TurnCallDeps } from '../call/turn-call.ts';
import { createLegacyToLegacy, type LegacyToLegacy, type LegacyToLegacyOptions } from './legs/legacy-to-legacy.ts';
import { createLegacyToModern, type LegacyToModern, type LegacyToModernOptions } from './legs/legacy-to-modern.ts';
import { createModernToLegacy, type ModernToLegacyOptions } from './legs/modern-to-legacy.ts';
import { createModernToModern, type ModernToModernOptions } from './legs/modern-to-modern.ts';

type LegsOptions = LegacyToLegacyOptions & LegacyToModernOptions & ModernToLegacyOptions & ModernToModernOptions;

/** The four legs between clients and servers of both eras, by how the client speaks and by the server's era. */
export interface Legs {
  readonly legs: TurnCallDeps['legs'];
  readonly raw: LegacyToLegacy;
  readonly bridge: LegacyToModern;
}

export function createLegs(options: LegsOptions): Legs {
  const raw = createLegacyToLegacy(options);
  const bridge = createLegacyToModern(options);
  const standalone = { modern: createModernToModern(options), legacy: createModernToLegacy(options) };
  const legs = { modern: standalone, bare: standalone, legacy: { modern: bridge.leg, legacy: raw.leg } };
  return { legs, raw, bridge };
}
