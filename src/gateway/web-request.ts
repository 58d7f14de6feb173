import type { IncomingHttpHeaders } from 'node:http';

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

/**
 * Lets the cookie of a session count for this request. Without it no cookie does: MCP, A2A and tunnels never call it.
 * The mark is on the headers, as these are all that authentication is given, and no client can send a symbol.
 */
export function letCookieCount(request: WebRequest): void {
  // Both names of the cookie hold this text, and no other request is slowed down.
  if (request.headers.cookie?.includes('tollgate')) (request.headers as Marked)[REQUEST] = request;
}

/** The request whose cookie counts; undefined for one without. */
export const webRequestOf = (headers: IncomingHttpHeaders): WebRequest | undefined => (headers as Marked)[REQUEST];
