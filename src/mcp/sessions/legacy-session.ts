// How the session of a legacy client with one service is stored, and how it is renewed at a server that lost it.

import { randomBytes } from 'node:crypto';
import { isObject, type JsonObject, setMember, splice } from '#wire';
import type { Offer } from '#catalog';
import type { StoredSession, SessionStore } from '../request/session-store.ts';
import { type LegacySession, NO_SESSION, type McpResponse, type ServerPlace } from '../request/mcp-request.ts';
import { initializeAt, leaveServer, notifyInitialized } from '../servers/legacy-server.ts';
import type { Era } from '../wire/revisions.ts';

/** The kind of the sessions of legacy clients with one service, in the store. */
export const SESSION_KIND = 'mcp';

export interface SessionState extends Pick<
  LegacySession,
  'within' | 'service' | 'revision' | 'openedAt' | 'initialize' | 'upstreamId' | 'logLevel'
> {
  readonly offer: string;
  /** Absent in states that older gateways stored. */
  readonly era?: Era;
}

export function toState({
  id: _id,
  account: _account,
  clientCapabilities: _declared,
  ...state
}: LegacySession): string {
  return JSON.stringify({ ...state, offer: state.offer.id } satisfies SessionState);
}

/** A session from its stored state; null if its offer no longer exists. */
export function fromState(
  { id, account, state }: StoredSession,
  offerOf: (offerId: string) => Offer | null,
): LegacySession | null {
  const { offer: offerId, era, ...stored } = JSON.parse(state) as SessionState;
  const offer = offerOf(offerId);
  if (offer === null) return null;
  const known = era ?? (stored.upstreamId === null ? 'modern' : 'legacy');
  return { ...stored, id, account, offer, era: known, clientCapabilities: capabilitiesOf(stored.initialize) };
}

export function capabilitiesOf(initialize: string): JsonObject {
  const { params } = JSON.parse(initialize) as { readonly params?: { readonly capabilities?: unknown } };
  const capabilities = params?.capabilities;
  return isObject(capabilities) ? capabilities : {};
}

/**
 * Opens another session at a server that has lost the session with the id `lost`. It sends the client's own
 * `initialize`. All requests that find the loss share one renewal. `gone`: the session has ended, or its server cannot
 * continue it. Throws UpstreamFailure.
 */
export type RenewSession = (
  session: LegacySession,
  lost: string,
  place: Pick<ServerPlace, 'send'>,
) => Promise<'renewed' | 'gone'>;

interface SessionRenewalOptions {
  readonly store: Pick<SessionStore, 'get' | 'change' | 'delete'>;
  readonly offerOf: (offerId: string) => Offer | null;
  readonly onGone: (session: LegacySession) => void;
  readonly onError: (error: unknown) => void;
}

export function createSessionRenewal({ store, offerOf, onGone, onError }: SessionRenewalOptions): RenewSession {
  const running = new Map<string, Promise<'renewed' | 'gone'>>();

  async function renew(
    session: LegacySession,
    lost: string,
    { send }: Pick<ServerPlace, 'send'>,
  ): Promise<'renewed' | 'gone'> {
    const row = await store.get(session.id);
    const stored = row && fromState(row, offerOf);
    if (stored && stored.upstreamId !== lost) {
      // Another gateway has already renewed it.
      session.upstreamId = stored.upstreamId;
      return 'renewed';
    }
    const server = stored && (await initializeAt(send, withOwnId(session.initialize))).accepted;
    if (!server || server.revision !== session.revision) {
      if (server) await leaveServer(send, server);
      if (stored) await store.delete(session.id);
      onGone(session);
      return 'gone';
    }
    await notifyInitialized(send, server);
    session.upstreamId = server.upstreamId;
    await store.change(session.id, toState(session)).catch(onError);
    return 'renewed';
  }

  return async (session, lost, place) => {
    for (;;) {
      if (session.upstreamId !== lost) return 'renewed';
      const other = running.get(session.id);
      if (!other) {
        const own = renew(session, lost, place).finally(() => running.delete(session.id));
        running.set(session.id, own);
        return await own;
      }
      // The call that began the renewal may have ended before the renewal did. Then this call renews.
      const ended = await other.catch(() => null);
      if (ended !== null) return ended;
    }
  };
}

/** Result of an attempt whose session is lost at its server. */
export const LOST = Symbol('lost');

/**
 * Runs `attempt` in a session. If it returns LOST, renews the session and runs `attempt` once more. It may return LOST
 * only if `mayBeLost` is true. Returns NO_SESSION if the session cannot continue.
 */
export async function renewOnce<T>(
  session: LegacySession,
  place: Pick<ServerPlace, 'send'>,
  renew: RenewSession,
  attempt: (mayBeLost: boolean) => Promise<T | typeof LOST>,
): Promise<T | McpResponse> {
  const { upstreamId } = session;
  const first = await attempt(upstreamId !== null);
  if (first !== LOST) return first;
  if ((await renew(session, upstreamId!, place)) === 'gone') return NO_SESSION;
  return (await attempt(false)) as T;
}

/** The client's `initialize` with a random id, which the client has not used. */
function withOwnId(initialize: string): string {
  return splice(initialize, [setMember(initialize, 0, 'id', `"tollgate:${randomBytes(9).toString('base64url')}"`)]);
}
