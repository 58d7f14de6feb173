import { GatewayError } from '#errors';
import { isLoopback, parseHost } from '#security';
import { type CookieKind, cookieNames, cookieValues, type WebRequest } from '#http';
import { signInError } from '../siwx/message.ts';

/** Reads and writes the cookies of web sessions. */
export interface SessionCookies {
  /**
   * The secret in a request's cookie. null without one. Throws GatewayError `unauthorized` for two cookies with the
   * name, because an attacker may have set one of them.
   */
  read(request: WebRequest, kind: CookieKind): string | null;
  /** The value of `Set-Cookie` that stores the secret for `maxAgeS` seconds. */
  write(request: WebRequest, kind: CookieKind, secret: string, maxAgeS: number): string;
  /** The value of `Set-Cookie` that removes the cookie. */
  remove(request: WebRequest, kind: CookieKind): string;
  /** Throws GatewayError `invalid_request` for a page on plain http if its browser would silently drop the cookie. */
  refuseUnkept(request: WebRequest): void;
  /** Throws GatewayError `permission_denied` for a request that another site's page made a browser send. */
  refuseCrossSite(request: WebRequest): void;
}

/** 32 bytes in base64url. */
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** `publicUrl` shows that browsers use https if a proxy in front of the gateway terminates TLS. */
export function createSessionCookies(publicUrl: string | null): SessionCookies {
  const publicOrigin = publicUrl === null ? null : new URL(publicUrl).origin;
  const alwaysSecure = publicUrl?.startsWith('https:') ?? false;
  const isSecure = ({ protocol }: WebRequest) => alwaysSecure || protocol === 'https';
  // A proxy that terminates TLS may not be configured as trusted. Then the page's Origin shows that the browser uses
  // https.
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
    // On localhost, ports share cookies, so the secure cookie may belong to another gateway on https. On any other host
    // it was set over https by this host, so a proxy terminates TLS.
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
    refuseCrossSite: (request) => refuseCrossSite(request, publicOrigin),
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

/**
 * Only a script of the same origin can send this header without a CORS preflight. The gateway's own pages always send
 * it.
 */
const WEB_HEADER = 'x-tollgate-web';
const HOW = `send it from a page of this gateway, with the header ${WEB_HEADER}: 1`;

/**
 * Refuses requests that a page of another site made a browser send with its cookie (CSRF). Over https and on localhost,
 * browsers send Sec-Fetch-Site. Without it, the request needs the gateway's own Origin or the header of its pages, and
 * any other Origin is refused. Every method except GET and HEAD needs the header in any case. `publicOrigin` is the
 * gateway's own even if a proxy changes the Host. Throws GatewayError `permission_denied`.
 */
function refuseCrossSite({ method, protocol, host, headers }: WebRequest, publicOrigin: string | null): void {
  const { origin, 'sec-fetch-site': site } = headers;
  const marked = headers[WEB_HEADER] === '1';
  const own = origin !== undefined && (origin === publicOrigin || isOwn(origin, protocol, host));
  // With `same-origin`, the browser itself has compared the origins, even if a proxy changes the Host.
  if (site === undefined ? origin !== undefined && !own : site !== 'same-origin')
    throw new GatewayError('permission_denied', `This request came from another site, or from no page: ${HOW}`);
  if (site === undefined && !marked && !own)
    throw new GatewayError(
      'permission_denied',
      `This request does not show that it comes from a page of this gateway: ${HOW}`,
    );
  if (method !== 'GET' && method !== 'HEAD' && !marked)
    throw new GatewayError('permission_denied', `A cookie alone is not enough for a change: ${HOW}`);
}

/**
 * Whether an Origin is the gateway's own. https is accepted too, because `protocol` is http behind a proxy that
 * terminates TLS.
 */
function isOwn(origin: string, protocol: string, host: string): boolean {
  return origin === `${protocol}://${host}` || origin === `https://${host}`;
}
