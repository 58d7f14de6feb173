import type { TurnCallDeps } from '../call/turn-call.ts';
import {
  CANCEL_GRACE_MS,
  createLegacyToLegacy,
  type LegacyToLegacy,
  type LegacyToLegacyOptions,
} from './legs/legacy-to-legacy.ts';
import { createLegacyToModern, type LegacyToModern, type LegacyToModernOptions } from './legs/legacy-to-modern.ts';
import { createModernToLegacy, type ModernToLegacyOptions } from './legs/modern-to-legacy.ts';
import { createModernToModern, type ModernToModernOptions } from './legs/modern-to-modern.ts';

interface LegsOptions
  extends LegacyToLegacyOptions, LegacyToModernOptions, ModernToLegacyOptions, ModernToModernOptions {
  readonly cancelGraceMs?: never;
  /** How long the gateway reads on after a client has left. */
  readonly drainMs: number;
}

/** The four legs between clients and servers of both eras, by how the client speaks and by the server's era. */
export interface Legs {
  readonly legs: TurnCallDeps['legs'];
  readonly raw: LegacyToLegacy;
  readonly bridge: LegacyToModern;
}

export function createLegs(options: LegsOptions): Legs {
  const { drainMs, ...others } = options;
  // A server with sessions is told of a cancellation and stops. A modern one is told by the end of its stream, so the
  // time in which its answer is still paid has to pass before.
  const told = { ...others, cancelGraceMs: Math.min(drainMs, CANCEL_GRACE_MS) };
  const raw = createLegacyToLegacy(told);
  const bridge = createLegacyToModern({ ...others, cancelGraceMs: drainMs });
  const standalone = { modern: createModernToModern(options), legacy: createModernToLegacy(told) };
  const legs = { modern: standalone, bare: standalone, legacy: { modern: bridge.leg, legacy: raw.leg } };
  return { legs, raw, bridge };
}
