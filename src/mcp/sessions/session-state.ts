import { isObject, type JsonObject } from '#wire';
import type { Offer } from '#gateway';
import type { StoredSession } from '#tasks';
import type { LegacySession } from '../turn/session.ts';
import type { Era } from '../turn/turn.ts';

/** The kind of these sessions in the store. */
export const SESSION_KIND = 'mcp';

interface State {
  readonly service: string;
  /** Id of the offer. */
  readonly offer: string;
  /** Absent in states of older gateways. */
  readonly era?: Era;
  readonly revision: string;
  readonly openedAt: number;
  readonly initialize: string;
  readonly upstreamId: string | null;
  readonly logLevel: string | null;
}

/** The stored state of a session, as text. */
export function toState({
  service,
  offer,
  era,
  revision,
  openedAt,
  initialize,
  upstreamId,
  logLevel,
}: LegacySession): string {
  return JSON.stringify({
    service,
    offer: offer.id,
    era,
    revision,
    openedAt,
    initialize,
    upstreamId,
    logLevel,
  } satisfies State);
}

/** A session from its stored state; null where its offer is gone. */
export function fromState(
  { id, account, state }: StoredSession,
  offerOf: (offerId: string) => Offer | null,
): LegacySession | null {
  const {
    service,
    offer: offerId,
    era,
    revision,
    openedAt,
    initialize,
    upstreamId,
    logLevel,
  } = JSON.parse(state) as State;
  const offer = offerOf(offerId);
  if (offer === null) return null;
  return {
    id,
    account,
    service,
    offer,
    era: era ?? (upstreamId === null ? 'modern' : 'legacy'),
    revision,
    openedAt,
    initialize,
    clientCapabilities: capabilitiesOf(initialize),
    upstreamId,
    logLevel,
  };
}

/** The end of a session, from its stored state. */
export function endOf({ state }: Pick<StoredSession, 'state'>, at: number, error: string | null): SessionEnd {
  const { revision, openedAt } = JSON.parse(state) as State;
  return { durationMs: at - openedAt, revision, error };
}

/** `error`: why the session ended out of order; null in order. */
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
