import { isObject, type JsonObject } from '#wire';
import type { Offer } from '#gateway';
import type { StoredSession } from '#tasks';
import type { LegacySession } from '../request/session.ts';
import type { Era } from '../request/mcp-request.ts';

/** The kind of these sessions in the store. */
export const SESSION_KIND = 'mcp';

interface State extends Pick<
  LegacySession,
  'within' | 'service' | 'revision' | 'openedAt' | 'initialize' | 'upstreamId' | 'logLevel'
> {
  /** Id of the offer. */
  readonly offer: string;
  /** Absent in states that older gateways stored. */
  readonly era?: Era;
}

/** The stored state of a session, as text. */
export function toState({ id: _id, account: _account, clientCapabilities: _declared, ...kept }: LegacySession): string {
  return JSON.stringify({ ...kept, offer: kept.offer.id } satisfies State);
}

/** A session from its stored state; null if its offer no longer exists. */
export function fromState(
  { id, account, state }: StoredSession,
  offerOf: (offerId: string) => Offer | null,
): LegacySession | null {
  const { offer: offerId, era, ...kept } = JSON.parse(state) as State;
  const offer = offerOf(offerId);
  if (offer === null) return null;
  const known = era ?? (kept.upstreamId === null ? 'modern' : 'legacy');
  return { ...kept, id, account, offer, era: known, clientCapabilities: capabilitiesOf(kept.initialize) };
}

/** The facts about a session's end, from its stored state. */
export function endOf({ state }: Pick<StoredSession, 'state'>, at: number, error: string | null): SessionEnd {
  const { revision, openedAt } = JSON.parse(state) as State;
  return { durationMs: at - openedAt, revision, error };
}

/** `error`: why the session ended abnormally; null if it ended normally. */
export interface SessionEnd {
  readonly durationMs: number;
  readonly revision: string;
  readonly error: string | null;
}

/** The capabilities in a client's `initialize` message. */
export function capabilitiesOf(initialize: string): JsonObject {
  const { params } = JSON.parse(initialize) as { readonly params?: { readonly capabilities?: unknown } };
  const capabilities = params?.capabilities;
  return isObject(capabilities) ? capabilities : {};
}
