import type { Attempts } from '../attempts.ts';
import type { WebSession, WebSessions } from './web-sessions.ts';

export interface LookupDeps {
  readonly sessions: Pick<WebSessions, 'known' | 'wasGood' | 'find'>;
  readonly attempts: Attempts;
}

/**
 * Looks up the session of a cookie. A cookie without a recent valid session may be a guess, so `attempts` counts it. A
 * cookie that was valid does not wait because of other clients that fail from the same address. `accept` throws
 * GatewayError `unauthorized` for a session that is not valid. It must do nothing else, because it runs inside
 * `attempts.check`, which limits concurrency.
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
