import { GatewayError, isLoopback, parseHost } from '#wire';
import { type CookieKind, cookieNames, cookieValues, type WebRequest } from '#gateway';
import { signInError } from '../siwx/sign-in-error.ts';

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
  /** Throws GatewayError `invalid_request` for a page whose browser would drop the cookie without a word. */
  refuseUnkept(request: WebRequest): void;
}

/** 32 bytes in base64url. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** `publicUrl` tells https where a proxy before the gateway speaks it. */
export function createSessionCookies(publicUrl: string | null): SessionCookies {
  const alwaysSecure = publicUrl?.startsWith('https:') ?? false;
  const isSecure = ({ protocol }: WebRequest) => alwaysSecure || protocol === 'https';
  // The operator need not have named a proxy that ends TLS. The page's Origin tells https then.
  const writesSecure = (request: WebRequest) =>
    isSecure(request) || (!isLocal(request.host) && request.headers.origin === `https://${request.host}`);
  const setting = (request: WebRequest, kind: CookieKind, value: string, maxAgeS: number, secure: boolean) => {
    const flags = `Path=/;${secure ? ' Secure;' : ''} HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}`;
    return `${cookieNames(request, kind)[secure ? 'secure' : 'plain']}=${value}; ${flags}`;
  };
  const valuesOf = (request: WebRequest, kind: CookieKind): readonly string[] => {
    const { cookie = '' } = request.headers;
    const { secure, plain } = cookieNames(request, kind);
    if (isSecure(request)) return cookieValues(cookie, secure);
    // On this machine it may be of another gateway, at https. Elsewhere it is of this host, over https.
    const overTls = isLocal(request.host) ? [] : cookieValues(cookie, secure);
    return overTls.length > 0 ? overTls : cookieValues(cookie, plain);
  };

  return {
    read(request, kind) {
      const [secret, second] = valuesOf(request, kind);
      if (secret === undefined) return null;
      if (second !== undefined)
        throw signInError(
          'Two session cookies came with this request: delete the cookies of this site and sign in again',
        );
      return SECRET.test(secret) ? secret : null;
    },
    write: (request, kind, secret, maxAgeS) => setting(request, kind, secret, maxAgeS, writesSecure(request)),
    remove(request, kind) {
      const { secure } = cookieNames(request, kind);
      const isThere = !isLocal(request.host) && cookieValues(request.headers.cookie ?? '', secure).length > 0;
      return setting(request, kind, '', 0, isThere || writesSecure(request));
    },
    refuseUnkept({ headers: { origin } }) {
      if (!alwaysSecure || !origin?.startsWith('http://') || isLocal(origin.slice('http://'.length))) return;
      throw new GatewayError(
        'invalid_request',
        `Browsers keep no session of this gateway over plain http: open ${publicUrl} and sign in there`,
      );
    },
  };
}

const isLocal = (host: string): boolean => isLoopback(parseHost(host)?.name ?? '');
