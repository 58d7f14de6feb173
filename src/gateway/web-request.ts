import type { IncomingHttpHeaders } from 'node:http';
import { parseHost } from '#wire';

/** The parts of a browser's request that identify its session and show whether another site sent it. */
export interface WebRequest {
  readonly method: string;
  /** `http` or `https`. */
  readonly protocol: string;
  /** The Host header. */
  readonly host: string;
  readonly headers: IncomingHttpHeaders;
}

const REQUEST = Symbol('web request');
type Marked = IncomingHttpHeaders & { [REQUEST]?: WebRequest };

/** The kind of session that a cookie belongs to. */
export type CookieKind = 'account' | 'admin';

const NAMES: Readonly<Record<CookieKind, string>> = { account: 'tollgate', admin: 'tollgate-admin' };

/**
 * The names of a session's cookie. Over https it begins with `__Host-`, so that neither a neighbouring host nor an http
 * page can set such a cookie. Cookies ignore ports. So over plain http the name contains the port, to keep several
 * gateways on one machine apart.
 */
export function cookieNames(
  { host }: Pick<WebRequest, 'host'>,
  kind: CookieKind,
): { readonly secure: string; readonly plain: string } {
  const port = parseHost(host)?.port ?? '';
  return { secure: `__Host-${NAMES[kind]}`, plain: port === '' ? NAMES[kind] : `${NAMES[kind]}-${port}` };
}

/** The values of all cookies with the name. */
export const cookieValues = (cookie: string, name: string): readonly string[] =>
  cookie
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));

/**
 * Lets the session cookie authenticate this request. Returns whether there is one. Without this call no cookie counts,
 * and MCP, A2A and tunnels never make it. The mark is a symbol on the headers, because authentication gets only the
 * headers, and no client can send a symbol.
 */
export function letCookieCount(request: WebRequest): boolean {
  const { cookie } = request.headers;
  // A fast check for the many requests without such a cookie.
  if (!cookie?.includes(NAMES.account)) return false;
  const { secure, plain } = cookieNames(request, 'account');
  if (cookieValues(cookie, secure).length + cookieValues(cookie, plain).length === 0) return false;
  (request.headers as Marked)[REQUEST] = request;
  return true;
}

/** The request if its cookie counts; undefined otherwise. */
export const webRequestOf = (headers: IncomingHttpHeaders): WebRequest | undefined => (headers as Marked)[REQUEST];
