import type { RequestCallDeps } from './request-call.ts';
import {
  CANCEL_GRACE_MS,
  createLegacyToLegacy,
  type LegacyToLegacy,
  type LegacyToLegacyOptions,
} from '../translators/legacy-to-legacy.ts';
import {
  createLegacyToModern,
  type LegacyToModern,
  type LegacyToModernOptions,
} from '../translators/legacy-to-modern.ts';
import { createModernToLegacy, type ModernToLegacyOptions } from '../translators/modern-to-legacy.ts';
import { createModernToModern, type ModernToModernOptions } from '../translators/modern-to-modern.ts';

interface TranslatorsOptions
  extends LegacyToLegacyOptions, LegacyToModernOptions, ModernToLegacyOptions, ModernToModernOptions {
  readonly cancelGraceMs?: never;
  /** How long the gateway reads on after a client has left. */
  readonly drainMs: number;
}

/** The four translators between clients and servers of both eras, by how the client speaks and by the server's era. */
interface EraTranslators {
  readonly translators: RequestCallDeps['translators'];
  readonly raw: LegacyToLegacy;
  readonly bridge: LegacyToModern;
}

export function createTranslators(options: TranslatorsOptions): EraTranslators {
  const { drainMs, ...others } = options;
  // A server with sessions is told of a cancellation and stops. A modern one is told by the end of its stream, so the
  // time in which its answer is still paid has to pass before.
  const parts = { ...others, cancelGraceMs: Math.min(drainMs, CANCEL_GRACE_MS) };
  const raw = createLegacyToLegacy(parts);
  const bridge = createLegacyToModern({ ...others, cancelGraceMs: drainMs });
  const stateless = { modern: createModernToModern(options), legacy: createModernToLegacy(parts) };
  const translators = {
    modern: stateless,
    bare: stateless,
    legacy: { modern: bridge.translator, legacy: raw.translator },
  };
  return { translators, raw, bridge };
}
