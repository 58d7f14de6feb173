import type { Offer, Send } from '#gateway';
import type { StoredSession } from '#tasks';
import { leaveServer } from '../servers/legacy-server.ts';
import { fromState } from './session-state.ts';

/**
 * Makes a free call of an account at one offer. Nobody waits for the call, and it ends within seconds. Rejects if the
 * provider cannot be reached.
 */
export type FreeRequest = (
  at: { readonly account: string; readonly offer: Offer },
  method: string,
  messages: (send: Send) => Promise<void>,
) => Promise<void>;

/** Servers that are notified at the same time. */
const AT_ONCE = 16;

/**
 * Tells servers that sessions have ended. Never rejects. Notifies no further servers after `lastsMs`, because sessions
 * expire at their servers too.
 */
export async function tellServers(
  rows: readonly StoredSession[],
  freeRequest: FreeRequest,
  offerOf: (offerId: string) => Offer | null,
  lastsMs: number,
): Promise<void> {
  const until = performance.now() + lastsMs;
  const waiting = rows[Symbol.iterator]();
  const tell = async () => {
    for (const row of waiting) {
      if (performance.now() > until) return;
      const session = fromState(row, offerOf);
      if (session === null || session.upstreamId === null) continue;
      try {
        await freeRequest(session, 'session/end', (send) => leaveServer(send, session));
      } catch {
        // The provider is unreachable or broken.
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, rows.length) }, tell));
}
