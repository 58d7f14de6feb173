import type { Offer, StoredSession } from '#gateway';
import { isObject, type JsonObject } from './message.ts';
import type { LegacySession } from './session.ts';

/** The word for MCP's sessions among those that the gateway keeps. */
export const SESSION_KIND = 'mcp';

interface State {
  readonly service: string;
  /** Id of the offer. */
  readonly offer: string;
  readonly revision: string;
  readonly initialize: string;
  readonly upstreamId: string | null;
  readonly logLevel: string | null;
}

/** What is kept of a session, as text. */
export function toState({ service, offer, revision, initialize, upstreamId, logLevel }: LegacySession): string {
  return JSON.stringify({ service, offer: offer.id, revision, initialize, upstreamId, logLevel } satisfies State);
}

/** A session as it was kept; null when its offer is there no more. */
export function fromState({ id, account, state }: StoredSession, offerOf: (offerId: string) => Offer | null): LegacySession | null {
  const { service, offer: offerId, revision, initialize, upstreamId, logLevel } = JSON.parse(state) as State;
  const offer = offerOf(offerId);
  if (offer === null) return null;
  return { id, account, service, offer, revision, initialize, clientCapabilities: capabilitiesOf(initialize), upstreamId, logLevel };
}

/** What a client said in its `initialize` message that it can do. */
export function capabilitiesOf(initialize: string): JsonObject {
  const { params } = JSON.parse(initialize) as { readonly params?: { readonly capabilities?: unknown } };
  const capabilities = params?.capabilities;
  return isObject(capabilities) ? capabilities : {};
}
