import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest, FastifyInstance } from 'fastify';
import { CREDENTIAL_HEADERS, networkOf, createOwnOrigin, type OwnOrigin, parseHost } from '#security';
import type { Caller } from '#accounts';
import type { Admission } from '#limits';

/*
 * What is known of a request before its handler runs: its caller, its client's address, the names of this gateway, and
 * the session of a browser.
 */

/**
 * Properties of the request that hold its admission and its visitor. A WeakMap would cost more, because each collection
 * of the young heap scans all its entries.
 */
const ADMISSION = Symbol('admission');
const VISITOR = Symbol('visitor');

type MarkedRequest = FastifyRequest & { [ADMISSION]?: Admission; [VISITOR]?: Caller };

/** Notes the admission of a request, for its handler and for the reader of its body. */
export function noteAdmission(request: FastifyRequest, admission: Admission): void {
  (request as MarkedRequest)[ADMISSION] = admission;
}

export const admissionOf = (request: FastifyRequest): Admission | undefined => (request as MarkedRequest)[ADMISSION];

/** Notes the caller of a request at a route without admission, for the reader of its body. */
export function noteVisitor(request: FastifyRequest, caller: Caller): void {
  (request as MarkedRequest)[VISITOR] = caller;
}

/** The caller of a request, as far as it is known before the body is read. */
export const callerOf = (request: FastifyRequest): Caller | undefined =>
  (request as MarkedRequest)[ADMISSION]?.caller ?? (request as MarkedRequest)[VISITOR];

/** The account whose share of what is scarce a request uses; null without one. */
export function accountOf(request: FastifyRequest): string | null {
  const caller = callerOf(request);
  return caller === undefined || caller.anonymous ? null : caller.account;
}

/** The network of the client, by which its bodies are counted. */
export const clientNetworkOf = (request: FastifyRequest): string => networkOf(addressOf(request));

/**
 * The client's address. Faster than `request.ip`, which evaluates the list of trusted proxies even without an
 * `x-forwarded-for`.
 */
export const addressOf = (request: FastifyRequest): string =>
  (request.headers['x-forwarded-for'] === undefined ? request.raw.socket.remoteAddress : undefined) ?? request.ip;

declare module 'fastify' {
  interface FastifyInstance {
    ownOrigin: OwnOrigin;
  }
}

const NO_NAMES = createOwnOrigin({ publicUrl: null });

/** Gives the routes of a server its own origin. Default: a server that knows no names of itself. */
export function addOwnOrigin(server: FastifyInstance, ownOrigin: OwnOrigin = NO_NAMES): void {
  server.decorate('ownOrigin', ownOrigin);
}

/**
 * An address of this gateway for the answer to a request: that of the request itself, without its query, or that of
 * `path`. It has no origin if none is known, because the host of the request may be a stranger's. The server must have
 * its own origin, see addOwnOrigin.
 */
export function shownAddress(
  request: Pick<FastifyRequest, 'protocol' | 'host' | 'url' | 'server'>,
  path: string = request.url.split('?', 1)[0]!,
): string {
  return (request.server.ownOrigin(request) ?? '') + path;
}

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
type WebHeaders = IncomingHttpHeaders & { [REQUEST]?: WebRequest };

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
  (request.headers as WebHeaders)[REQUEST] = request;
  return true;
}

/** The request if its cookie counts; undefined otherwise. */
export const webRequestOf = (headers: IncomingHttpHeaders): WebRequest | undefined => (headers as WebHeaders)[REQUEST];
/** Whether a request has any credential, valid or not. */
export const hasCredentials = (headers: IncomingHttpHeaders): boolean =>
  CREDENTIAL_HEADERS.some((name) => headers[name] !== undefined) || webRequestOf(headers) !== undefined;
