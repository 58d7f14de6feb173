import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#wire';
import type { WebRequest } from '#gateway';
import { findGuarded, type LookupDeps } from './guarded-lookup.ts';
import type { SessionCookies } from './session-cookie.ts';
import { ADMIN, type WebSession, type WebSessions } from './web-sessions.ts';

/** `ip`: the client's address. */
type FromAddress = WebRequest & { readonly ip: string };
type AdminRequest = FromAddress & { readonly url: string; readonly headers: IncomingHttpHeaders };

/**
 * Sessions of operators' browsers. A lookup rejects with GatewayError `rate_limit_exceeded` after too many failures
 * from the address.
 */
export interface AdminSessions {
  begin(request: WebRequest): ReturnType<WebSessions['begin']>;
  /**
   * Rejects with GatewayError `unauthorized` without a session, or if the session is over or belongs to another admin
   * key.
   */
  find(request: FromAddress): Promise<WebSession>;
  /** Rejects like find, and with `permission_denied` for a request from another site. */
  end(request: FromAddress): Promise<void>;
  /**
   * Whether the cookie authorises a request of the admin API. A session may only read. A change needs the key itself,
   * because most changes move money or create keys. Rejects with GatewayError `unauthorized` if the session is over or
   * the request is a change, and with `permission_denied` for a request from another site.
   */
  passes(request: AdminRequest): Promise<boolean>;
}

interface AdminSessionsOptions extends LookupDeps {
  readonly sessions: Pick<WebSessions, 'begin' | 'known' | 'wasGood' | 'find' | 'end'>;
  readonly cookies: SessionCookies;
  readonly adminKey: string | null;
  /**
   * The HMAC key for the digest of the admin key in each row. Without it, a reader of the database cannot test guesses
   * of the admin key.
   */
  readonly secret: Buffer;
}

export function createAdminSessions(options: AdminSessionsOptions): AdminSessions {
  const { sessions, cookies, adminKey, secret: seed } = options;
  // A new admin key ends all sessions of the old one.
  const keyHash = adminKey === null ? null : createHmac('sha256', seed).update(adminKey).digest('hex');
  const ofThisKey = (session: WebSession | null): WebSession => {
    if (session?.signedInBy === 'admin_key' && keyHash !== null && session.keyHash === keyHash) return session;
    throw unauthorized('This session is over: sign in with the admin key again');
  };
  const find = async (request: FromAddress): Promise<WebSession> => {
    const secret = cookies.read(request, 'admin');
    if (secret === null) throw unauthorized('This request has no session of an operator');
    return findGuarded(options, secret, request.ip, ofThisKey);
  };

  return {
    find,
    begin: ({ headers }) =>
      sessions.begin({
        account: ADMIN,
        signedInBy: 'admin_key',
        keyHash,
        wallet: null,
        client: headers['user-agent'] ?? '',
      }),
    async end(request) {
      const { id } = await find(request);
      cookies.refuseCrossSite(request);
      await sessions.end(id);
    },
    async passes(request) {
      if (request.headers.cookie === undefined || !request.url.startsWith('/admin/')) return false;
      if (cookies.read(request, 'admin') === null) return false;
      cookies.refuseCrossSite(request);
      await find(request);
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw unauthorized('A session is not enough for a change: send "Authorization: Bearer svc-admin-…" with it');
      return true;
    },
  };
}

function unauthorized(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' } });
}
