import type { Seals } from '#wire';
import type { TurnCallDeps } from '../call/turn-call.ts';
import type { ClientRequests } from '../turn/client-requests.ts';
import type { RenewSession } from '../sessions/session-renewal.ts';
import type { HeldCalls } from './held-calls.ts';
import { createLegacyToLegacy, type LegacyToLegacy } from './legs/legacy-to-legacy.ts';
import { createLegacyToModern, type LegacyToModern } from './legs/legacy-to-modern.ts';
import { createModernToLegacy } from './legs/modern-to-legacy.ts';
import { createModernToModern } from './legs/modern-to-modern.ts';
import type { UpstreamSessions } from './upstream-sessions.ts';

export interface LegsOptions {
  readonly sessions: UpstreamSessions;
  readonly held: HeldCalls;
  readonly seals: Seals;
  readonly clientRequests: ClientRequests;
  readonly schemaOf: TurnCallDeps['schemaOf'];
  readonly renew: RenewSession;
  /** How long a tool whose call was cancelled may still answer, and is paid if it does. */
  readonly cancelGraceMs: number;
  readonly replyBytesMax: number;
  readonly version: string;
}

/** The four ways between clients and servers of both eras, by the client's way to speak and the server's era. */
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
