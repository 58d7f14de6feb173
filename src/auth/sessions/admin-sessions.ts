import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#wire';
import type { WebRequest } from '#gateway';
import { hashKey } from '../accounts/api-key.ts';
import { refuseCrossSite } from './cross-site.ts';
import type { SessionCookies } from './session-cookie.ts';
import { ADMIN, type WebSession, type WebSessions } from './web-sessions.ts';

type AdminRequest = WebRequest & { readonly url: string; readonly headers: IncomingHttpHeaders };

/** Sessions of operators' browsers. */
export interface AdminSessions {
  begin(request: WebRequest): ReturnType<WebSessions['begin']>;
  /** The session of a request's cookie; null without one, or if it is over or of another admin key. */
  find(request: WebRequest): Promise<WebSession | null>;
  /** Rejects with GatewayError `unauthorized` without a session, `permission_denied` for a request of another site. */
  end(request: WebRequest): Promise<void>;
  /**
   * Whether the cookie lets a request of the admin API pass. It may read. What changes something needs the key itself,
   * as most of it moves money or makes keys. Rejects with GatewayError `unauthorized` for a session that is over or
   * not enough, `permission_denied` for a request of another site.
   */
  passes(request: AdminRequest): Promise<boolean>;
}

interface AdminSessionsOptions {
  readonly sessions: Pick<WebSessions, 'begin' | 'find' | 'end'>;
  readonly cookies: SessionCookies;
  readonly adminKey: string | null;
}

export function createAdminSessions({ sessions, cookies, adminKey }: AdminSessionsOptions): AdminSessions {
  // With another admin key all sessions of the last one are over.
  const keyHash = adminKey === null ? null : hashKey(adminKey);
  const find = async (request: WebRequest): Promise<WebSession | null> => {
    const secret = cookies.read(request, 'admin');
    const session = secret === null ? null : await sessions.find(secret);
    const isAdmin = session?.signedInBy === 'admin_key' && keyHash !== null && session.keyHash === keyHash;
    return isAdmin ? session : null;
  };

  return {
    find,
    begin: ({ headers }) =>
      sessions.begin({
        account: ADMIN,
        signedInBy: 'admin_key',
        keyHash,
        wallet: null,
        client: (headers['user-agent'] ?? '').replace(/[^ -~]/g, '?'),
      }),
    async end(request) {
      const session = await find(request);
      if (session === null) throw unauthorized('There is no session to end');
      refuseCrossSite(request);
      await sessions.end(session.id);
    },
    async passes(request) {
      if (request.headers.cookie === undefined || !request.url.startsWith('/admin/')) return false;
      if (cookies.read(request, 'admin') === null) return false;
      refuseCrossSite(request);
      if ((await find(request)) === null) throw unauthorized('This session is over: sign in with the admin key again');
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw unauthorized('A session is not enough for a change: send "Authorization: Bearer svc-admin-…" with it');
      return true;
    },
  };
}

function unauthorized(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' } });
}
