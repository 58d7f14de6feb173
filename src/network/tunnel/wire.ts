import { type Primitive, PRIMITIVES } from '#config';

/*
 * The protocol between a provider's proxy and a gateway.
 *
 * The proxy opens a WebSocket at TUNNEL_PATH, with its wallet's sign-in (or an API key) in the headers. Over the
 * duplex that this gives (createSocketStream at both ends), the gateway is an HTTP/2 client and the proxy an HTTP/2
 * server. The gateway opens one stream to CONTROL_PATH and keeps it: lines of JSON go both ways, GatewayMessage
 * from the gateway, ProxyMessage from the proxy. A proxy takes its provider's place, and calls come, with its first
 * registration that is accepted; until then an older connection keeps it. Every stream but the control stream is
 * one call: its path is servicePath(…) and what the upstream is asked for below it, its body and the reply are the
 * upstream's own, byte by byte.
 *
 * Behind TLS a proxy may mask its messages with zeros: masking guards plain-text intermediaries against what
 * scripts in browsers choose to send, and undoing it is a quarter of what a large reply costs the gateway.
 */

/** WebSocket subprotocol of this version of the wire. */
export const TUNNEL_PROTOCOL = 'tollgate.tunnel.v1';
export const CONTROL_PATH = '/control';
/** Longest line of the control stream. */
export const CONTROL_LINE_BYTES_MAX = 4 * 1024 * 1024;
/** Longest WebSocket message that either end takes. */
export const TUNNEL_MESSAGE_BYTES_MAX = 4 * 1024 * 1024;

/** Response header of a reply that the proxy made itself: why the upstream gave no reply. */
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
 * Request header of calls of tools: the same text for the same consumer at the same provider, so that what a tool
 * has little of can be shared out between consumers. It says nothing of who it is, and is another one at another
 * provider. Left out by gateways that do not know it.
 */
export const CONSUMER_HEADER = 'x-tollgate-consumer';

export type GatewayMessage =
  /** First: who the proxy is here, and the text that its registrations on this connection must carry. */
  | {
      readonly type: 'welcome';
      readonly provider: string;
      readonly account: string;
      readonly challenge: string;
      readonly version: string;
    }
  /** All services of the document are listed and can be called. */
  | { readonly type: 'registered'; readonly revision: number; readonly services: readonly string[] }
  /** The document was refused as a whole; what was registered before stays. */
  | { readonly type: 'refused'; readonly message: string; readonly problems: readonly RegistrationProblem[] }
  /** A newer connection of the same provider took over. The proxy does not dial again. */
  | { readonly type: 'replaced' }
  /** The gateway shuts down: dial again, elsewhere if there is an elsewhere. */
  | { readonly type: 'draining' };

export type ProxyMessage =
  /**
   * `document`: RegistrationDocument as JSON. `signature`: of registrationText, by the wallet; null where the proxy
   * came with an API key. `router`: the domain of the proxy's own sign-in message, which it signs for here too; the
   * gateway holds it against the domains it is known by. The proxy takes it from its own file and never from the
   * gateway, so that no router gets it to sign for another one.
   */
  | { readonly type: 'register'; readonly document: string; readonly router: string; readonly signature: string | null }
  /** The proxy shuts down: no new calls, those that run are finished. */
  | { readonly type: 'draining' };

export interface RegistrationProblem {
  /** Such as `models[0].pricing.prompt`. */
  readonly key: string;
  readonly wrong: string;
  readonly right: string;
}

/**
 * The offers of a proxy: the blocks of its file, without addresses, keys and commands. Prices are decimal texts of
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
 * The text a wallet signs for one registration: bound to this router, this connection and this document. `digest`
 * is the document's SHA-256 in hex.
 */
export function registrationText(of: {
  readonly router: string;
  readonly provider: string;
  readonly challenge: string;
  readonly digest: string;
}): string {
  return `tollgate provider registration\nRouter: ${of.router}\nProvider: ${of.provider}\nConnection: ${of.challenge}\nDocument SHA-256: ${of.digest}`;
}

/** Path of a service inside the tunnel. */
export function servicePath(primitive: Primitive, service: string): string {
  return `/${primitive}/${encodeURIComponent(service)}`;
}

/**
 * The service that a path inside the tunnel names, and the rest of the path (empty, or beginning with a slash or
 * question mark). null for any other path.
 */
export function parseServicePath(
  path: string,
): { readonly primitive: Primitive; readonly service: string; readonly rest: string } | null {
  const found = /^\/([a-z]+)\/([^/?]+)(.*)$/s.exec(path);
  const primitive = PRIMITIVES.find((each) => each === found?.[1]);
  if (!found || primitive === undefined) return null;
  try {
    return { primitive, service: decodeURIComponent(found[2]!), rest: found[3]! };
  } catch {
    return null;
  }
}
