import type { Caller, WebRequest } from '#gateway';
import { GatewayError } from '#wire';
import type { KeyCallers } from '../key-callers.ts';
import { findGuarded, type LookupDeps } from './guarded-lookup.ts';
import type { SessionCookies } from './session-cookie.ts';
import type { WebSession } from './web-sessions.ts';

interface SessionCallersOptions extends LookupDeps {
  readonly cookies: SessionCookies;
  readonly keys: Pick<KeyCallers, 'callerOfHash'>;
  readonly acceptDevelopment: boolean;
}

/**
 * The caller of a request by its session cookie. null without a cookie. A session that an API key began has the rights
 * of the key, as long as the key is valid. Throws or rejects with GatewayError `unauthorized` if the session is over,
 * `permission_denied` for a request from another site, `rate_limit_exceeded` after too many failures from the address.
 */
export type SessionCallers = (request: WebRequest, address: string) => Caller | Promise<Caller> | null;

export function createSessionCallers(options: SessionCallersOptions): SessionCallers {
  const { cookies, keys, acceptDevelopment } = options;

  const callerOf = (session: WebSession): Caller | Promise<Caller> => {
    const { id, account, signedInBy: by, keyHash, wallet } = session;
    if (by === 'wallet' && wallet !== null)
      return { account, key: null, wallet: { caip10: wallet, nonce: null }, session: { id, by } };
    if (by === 'development' && acceptDevelopment) return { account, key: null, wallet: null, session: { id, by } };
    if (by !== 'api_key' || keyHash === null) throw sessionOver();
    const withSession = (caller: Caller): Caller => ({ ...caller, session: { id, by: 'api_key' } });
    try {
      const caller = keys.callerOfHash(keyHash);
      return caller instanceof Promise ? caller.then(withSession, endedWithKey) : withSession(caller);
    } catch (error) {
      return endedWithKey(error);
    }
  };

  return (request, address) => {
    const secret = cookies.read(request, 'account');
    if (secret === null) return null;
    cookies.refuseCrossSite(request);
    const session = findGuarded(options, secret, address, notOver);
    return session instanceof Promise ? session.then(callerOf) : callerOf(session);
  };
}

function notOver(session: WebSession | null): WebSession {
  if (session === null) throw sessionOver();
  return session;
}

const sessionOver = () =>
  new GatewayError('unauthorized', 'This session is over: sign in again', {
    headers: { 'www-authenticate': 'Bearer, SIWx' },
  });

function endedWithKey(error: unknown): never {
  throw error instanceof GatewayError && error.code === 'unauthorized' ? sessionOver() : error;
}
