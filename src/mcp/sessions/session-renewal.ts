import { randomBytes } from 'node:crypto';
import { setMember, splice } from '#wire';
import type { Offer } from '#gateway';
import type { SessionStore } from '#tasks';
import { initializeAt, leaveServer, notifyInitialized } from '../servers/legacy-server.ts';
import { fromState, toState } from './session-state.ts';
import type { LegacySession } from '../turn/session.ts';
import type { Place } from '../turn/turn.ts';

/**
 * The server has lost the session that it knew as `lost`: opens another one there with the client's own
 * `initialize`, once for all requests that found out. `gone`: the session has ended, or its server cannot go on
 * with it. Throws UpstreamFailure.
 */
export type RenewSession = (
  session: LegacySession,
  lost: string,
  place: Pick<Place, 'send'>,
) => Promise<'renewed' | 'gone'>;

export interface SessionRenewalOptions {
  readonly store: Pick<SessionStore, 'get' | 'change' | 'delete'>;
  readonly offerOf: (offerId: string) => Offer | null;
  /** The session cannot be gone on with: it is forgotten here. */
  readonly onGone: (session: LegacySession) => void;
  /** Told of what could not be kept. */
  readonly onError: (error: unknown) => void;
}

export function createSessionRenewal({ store, offerOf, onGone, onError }: SessionRenewalOptions): RenewSession {
  const running = new Map<string, Promise<'renewed' | 'gone'>>();

  async function renew(
    session: LegacySession,
    lost: string,
    { send }: Pick<Place, 'send'>,
  ): Promise<'renewed' | 'gone'> {
    const row = await store.get(session.id);
    const kept = row && fromState(row, offerOf);
    if (kept && kept.upstreamId !== lost) {
      // Another gateway was faster.
      session.upstreamId = kept.upstreamId;
      return 'renewed';
    }
    const opened = kept && (await initializeAt(send, withOwnId(session.initialize))).accepted;
    if (!opened || opened.revision !== session.revision) {
      if (opened) await leaveServer(send, opened);
      if (kept) await store.delete(session.id);
      onGone(session);
      return 'gone';
    }
    await notifyInitialized(send, opened);
    session.upstreamId = opened.upstreamId;
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
      // The call that it belongs to may be over before it: then this one does it.
      const ended = await other.catch(() => null);
      if (ended !== null) return ended;
    }
  };
}

/** The client's `initialize` with an id that it cannot have used. */
function withOwnId(initialize: string): string {
  return splice(initialize, [setMember(initialize, 0, 'id', `"tollgate:${randomBytes(9).toString('base64url')}"`)]);
}
