import type { WebRequest } from '#gateway';
import { signInError } from '../siwx/sign-in-error.ts';

type CookieKind = 'account' | 'admin';

/** The cookies of web sessions: how they are called, read and written. */
export interface SessionCookies {
  /**
   * The secret in the cookie of a request; null without one. Throws GatewayError `unauthorized` if two cookies have
   * the name: one of them was planted.
   */
  read(request: WebRequest, kind: CookieKind): string | null;
  /** The value of `Set-Cookie` that lets the browser keep the secret for so long. */
  write(request: WebRequest, kind: CookieKind, secret: string, maxAgeS: number): string;
  /** The value of `Set-Cookie` that removes it. */
  remove(request: WebRequest, kind: CookieKind): string;
}

const NAMES: Readonly<Record<CookieKind, string>> = { account: 'tollgate', admin: 'tollgate-admin' };
/** 32 bytes in base64url. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/**
 * Over https the names begin with `__Host-`: no neighbouring host can set such a cookie, and no http page. `publicUrl`
 * tells https where a proxy before the gateway speaks it.
 */
export function createSessionCookies(publicUrl: string | null): SessionCookies {
  const alwaysSecure = publicUrl?.startsWith('https:') ?? false;
  const isSecure = ({ protocol }: WebRequest) => alwaysSecure || protocol === 'https';
  const nameOf = (secure: boolean, kind: CookieKind) => (secure ? `__Host-${NAMES[kind]}` : NAMES[kind]);
  const setting = (request: WebRequest, kind: CookieKind, value: string, maxAgeS: number) => {
    const secure = isSecure(request);
    const flags = `Path=/;${secure ? ' Secure;' : ''} HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}`;
    return `${nameOf(secure, kind)}=${value}; ${flags}`;
  };

  return {
    read(request, kind) {
      const start = `${nameOf(isSecure(request), kind)}=`;
      const [first, second] = (request.headers.cookie ?? '')
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(start));
      if (first === undefined) return null;
      if (second !== undefined)
        throw signInError(
          'Two session cookies came with this request: delete the cookies of this site and sign in again',
        );
      const secret = first.slice(start.length);
      return SECRET.test(secret) ? secret : null;
    },
    write: setting,
    remove: (request, kind) => setting(request, kind, '', 0),
  };
}
