import { type Primitive, PRIMITIVES } from '#config';

/*
 * The protocol between a provider's proxy and a gateway.
 *
 * The proxy opens a WebSocket at TUNNEL_PATH, with its wallet's sign-in (or an API key) in the headers.
 * createSocketStream turns it into a duplex at both ends. HTTP/2 runs over it, with the gateway as the client and the
 * proxy as the server. The gateway opens one stream to CONTROL_PATH and keeps it open. Lines of JSON go both ways on
 * it: GatewayMessage from the gateway, ProxyMessage from the proxy. With its first accepted registration, a proxy
 * replaces an older connection of its provider and gets calls. Until then the older connection stays. Every other
 * stream is one call, or a WebSocket (SOCKET_HEADER). Its path is servicePath(…) followed by the path of the upstream.
 * The bodies of request and reply are those of the upstream, byte by byte.
 *
 * Over TLS, a proxy may mask its messages with zeros. Masking only protects plain-text intermediaries against bytes
 * that scripts in browsers choose. Unmasking takes a quarter of the gateway's time for a large reply.
 */

/** WebSocket subprotocol of this version of the wire. */
export const TUNNEL_PROTOCOL = 'tollgate.tunnel.v1';
export const CONTROL_PATH = '/control';
/** Longest line of the control stream. */
export const CONTROL_LINE_BYTES_MAX = 4 * 1024 * 1024;
/** The longest WebSocket message that either end accepts. */
export const TUNNEL_MESSAGE_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Request header of a stream that is a connection to a service: its bytes, in both directions at once, are those of a
 * WebSocket over HTTP/1.1 from its handshake on. The proxy answers 200, then sends the handshake to the service with
 * its key. Older proxies refuse it as an unknown service.
 */
export const SOCKET_HEADER = 'x-tollgate-socket';

/** Response header of a reply from the proxy itself. It says why there is no reply of the upstream. */
export const PROXY_FAILURE_HEADER = 'x-tollgate-failure';
export const PROXY_FAILURES = [
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_broken',
  'unknown_service',
  'draining',
] as const;
export type ProxyFailure = (typeof PROXY_FAILURES)[number];

/**
 * Request header of calls of tools, and at a gateway of calls of packages of the AI SDK. It has the same text for the
 * same consumer at the same provider, so that a tool or a package can share scarce resources fairly between consumers.
 * It does not reveal the consumer, and differs between providers. Older gateways do not send it.
 */
export const CONSUMER_HEADER = 'x-tollgate-consumer';

/**
 * Request header of calls that the proxy may send once more, if its upstream closed an idle connection just then. See
 * `repeatable` of UpstreamRequest. Older gateways do not send it.
 */
export const REPEATABLE_HEADER = 'x-tollgate-repeatable';

export type GatewayMessage =
  /**
   * The first message: the proxy's identity at this gateway, and the challenge that the signatures of its registrations
   * on this connection must contain.
   */
  | {
      readonly type: 'welcome';
      readonly provider: string;
      readonly account: string;
      readonly challenge: string;
      readonly version: string;
      /** How earnings are paid here, in words. Older gateways do not send it. */
      readonly payouts?: string;
    }
  /**
   * All services of the document are listed and can be called. `raised`: those whose price has risen so much that calls
   * must accept it with `max_cost` until a time (ISO 8601). Older gateways do not send it.
   */
  | {
      readonly type: 'registered';
      readonly revision: number;
      readonly services: readonly string[];
      readonly raised?: readonly RaisedPrice[];
    }
  /** The document was refused as a whole. The earlier registration stays. */
  | { readonly type: 'refused'; readonly message: string; readonly problems: readonly RegistrationProblem[] }
  /** A newer connection of the same provider took over. The proxy does not dial again. */
  | { readonly type: 'replaced' }
  /**
   * This connection gets no new calls. Without `banned` the gateway shuts down, and the proxy dials again, another
   * gateway if there is one. With it the provider was banned, for this reason, and every dial is refused. Older
   * gateways do not send it.
   */
  | { readonly type: 'draining'; readonly banned?: string };

export interface RaisedPrice {
  readonly service: string;
  readonly until: string;
}

export type ProxyMessage =
  /**
   * `document`: RegistrationDocument as JSON. `signature`: the wallet's signature of registrationText. null if the
   * proxy has an API key. `router`: the domain in the proxy's sign-in message, which this signature covers too. The
   * gateway compares it with its own domains. The proxy takes it from its own file and never from the gateway, so that
   * no router can make it sign for another one.
   */
  | { readonly type: 'register'; readonly document: string; readonly router: string; readonly signature: string | null }
  /** The proxy shuts down. It accepts no new calls and finishes the running ones. */
  | { readonly type: 'draining' };

export interface RegistrationProblem {
  /** The path of the field, such as `models[0].pricing.prompt`. */
  readonly key: string;
  readonly wrong: string;
  readonly right: string;
}

/**
 * The offers of a proxy: the blocks of its file, without addresses, keys and commands. Prices are decimal strings in
 * USD.
 */
export interface RegistrationDocument {
  readonly version: 1;
  readonly models?: readonly unknown[];
  readonly tools?: readonly unknown[];
  readonly agents?: readonly unknown[];
  readonly images?: readonly unknown[];
  readonly videos?: readonly unknown[];
}

/**
 * The text that a wallet signs for one registration. It is bound to the router, the connection and the document.
 * `digest` is the document's SHA-256 in hex.
 */
export function registrationText(registration: {
  readonly router: string;
  readonly provider: string;
  readonly challenge: string;
  readonly digest: string;
}): string {
  return `tollgate provider registration\nRouter: ${registration.router}\nProvider: ${registration.provider}\nConnection: ${registration.challenge}\nDocument SHA-256: ${registration.digest}`;
}

export function servicePath(primitive: Primitive, service: string): string {
  return `/${primitive}/${encodeURIComponent(service)}`;
}

/**
 * Parses a path inside the tunnel into the service and the rest of the path. The rest is empty or begins with a slash
 * or question mark. null for any other path.
 */
export function parseServicePath(
  path: string,
): { readonly primitive: Primitive; readonly service: string; readonly rest: string } | null {
  const match = /^\/([a-z]+)\/([^/?]+)(.*)$/s.exec(path);
  const primitive = PRIMITIVES.find((each) => each === match?.[1]);
  if (!match || primitive === undefined) return null;
  try {
    return { primitive, service: decodeURIComponent(match[2]!), rest: match[3]! };
  } catch {
    return null;
  }
}
