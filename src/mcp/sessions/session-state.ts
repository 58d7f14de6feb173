import { isObject, type JsonObject } from '#wire';
import type { Offer } from '#gateway';
import type { StoredSession } from '#tasks';
import type { LegacySession } from '../turn/session.ts';
import type { Era } from '../turn/turn.ts';

/** The word for MCP's sessions among those that the gateway keeps. */
export const SESSION_KIND = 'mcp';

interface State {
  readonly service: string;
  /** Id of the offer. */
  readonly offer: string;
  /** Absent in what older gateways kept. */
  readonly era?: Era;
  readonly revision: string;
  readonly openedAt: number;
  readonly initialize: string;
  readonly upstreamId: string | null;
  readonly logLevel: string | null;
}

/** What is kept of a session, as text. */
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

/** A session as it was kept; null when its offer is there no more. */
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

/** What is told of a session that has ended, from what was kept of it. */
export function endOf({ state }: Pick<StoredSession, 'state'>, at: number, error: string | null): SessionEnd {
  const { revision, openedAt } = JSON.parse(state) as State;
  return { durationMs: at - openedAt, revision, error };
}

/** `error`: why it ended out of order; null in order. */
export interface SessionEnd {
  readonly durationMs: number;
  readonly revision: string;
  readonly error: string | null;
}

/** What a client said in its `initialize` message that it can do. */
export function capabilitiesOf(initialize: string): JsonObject {
  const { params } = JSON.parse(initialize) as { readonly params?: { readonly capabilities?: unknown } };
  const capabilities = params?.capabilities;
  return isObject(capabilities) ? capabilities : {};
}
