import type { Attempts } from '../attempts.ts';
import type { WebSession, WebSessions } from './web-sessions.ts';

export interface LookupDeps {
  readonly sessions: Pick<WebSessions, 'known' | 'wasGood' | 'find'>;
  readonly attempts: Attempts;
}

/**
 * Looks the session of a cookie up. A cookie that was not good lately may be a guess, so `attempts` counts it. One that
 * was good is not held up by strangers who fail from the same address. `accept` throws GatewayError `unauthorized` for
 * a session that does not count, and does nothing else: it runs while a place of the address is taken.
 */
export function findGuarded(
  { sessions, attempts }: LookupDeps,
  secret: string,
  address: string,
  accept: (session: WebSession | null) => WebSession,
): WebSession | Promise<WebSession> {
  const known = sessions.known(secret);
  if (known !== undefined) return accept(known);
  const look = async () => accept(await sessions.find(secret));
  return sessions.wasGood(secret) ? look() : attempts.check(address, look);
}
