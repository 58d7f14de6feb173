import type { IncomingHttpHeaders } from 'node:http';
import { parseHost } from '#wire';

/** The parts of a browser's request by which its session is found, and a request of another site is told. */
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

/** Whose session a cookie is of. */
export type CookieKind = 'account' | 'admin';

const NAMES: Readonly<Record<CookieKind, string>> = { account: 'tollgate', admin: 'tollgate-admin' };

/**
 * The names of a session's cookie. Over https it begins with `__Host-`: no neighbouring host can set such a cookie, and
 * no http page. Cookies ignore ports, so over plain http the port is part of the name: several gateways of one machine
 * keep apart.
 */
export function cookieNames(
  { host }: Pick<WebRequest, 'host'>,
  kind: CookieKind,
): { readonly secure: string; readonly plain: string } {
  const port = parseHost(host)?.port ?? '';
  return { secure: `__Host-${NAMES[kind]}`, plain: port === '' ? NAMES[kind] : `${NAMES[kind]}-${port}` };
}

/** The values of the cookies that have the name. */
export const cookieValues = (cookie: string, name: string): readonly string[] =>
  cookie
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));

/**
 * Lets the cookie of a session count for this request; returns whether there is one. Without it no cookie does: MCP,
 * A2A and tunnels never call it. The mark is on the headers, as these are all that authentication is given, and no
 * client can send a symbol.
 */
export function letCookieCount(request: WebRequest): boolean {
  const { cookie } = request.headers;
  // Requests without such a cookie are not slowed down.
  if (!cookie?.includes(NAMES.account)) return false;
  const { secure, plain } = cookieNames(request, 'account');
  if (cookieValues(cookie, secure).length + cookieValues(cookie, plain).length === 0) return false;
  (request.headers as Marked)[REQUEST] = request;
  return true;
}

/** The request whose cookie counts; undefined for one without. */
export const webRequestOf = (headers: IncomingHttpHeaders): WebRequest | undefined => (headers as Marked)[REQUEST];
