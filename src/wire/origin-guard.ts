import type { IncomingHttpHeaders } from 'node:http';
import { printable } from './printable.ts';
import { isLoopback, parseHost, type HostName } from './host-name.ts';

export interface OriginGuardOptions {
  readonly publicUrl: string | null;
  /** Hosts that wallets sign in for, with a port where it is not the scheme's. */
  readonly signInDomains: readonly string[];
  /** The host that the gateway listens on. */
  readonly bindHost: string;
  /** Serialised origins; `null` may be one. */
  readonly allowedOrigins: readonly string[];
  /** Host names without a port. */
  readonly allowedHosts: readonly string[];
}

/**
 * Why a request must not be served, or null. `rawHeaders` is IncomingMessage.rawHeaders, where a repeated Host is
 * seen: Node keeps the first, a proxy before us may have judged by the last.
 */
type OriginGuard = (headers: IncomingHttpHeaders, rawHeaders?: readonly string[]) => string | null;

const ORIGIN = /^(https?):\/\/([^/]+)$/i;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * Refuses what a page of a stranger can make a browser send: requests with the Origin of another place, and
 * requests to a name of the stranger's that leads here (DNS rebinding). A page that is open under a rebound name is
 * of the same origin as the gateway to its browser; only the name tells it. Where a gateway is open to the network
 * and was not told its names, Host is not judged; Origin always is. Ports of Host are not judged, as rebinding
 * changes names alone.
 */
export function createOriginGuard(options: OriginGuardOptions): OriginGuard {
  const { publicUrl, signInDomains, bindHost, allowedOrigins } = options;
  const bound = parseHost(bindHost.includes(':') ? `[${bindHost}]` : bindHost)?.name ?? bindHost;
  const onLoopback = isLoopback(bound);
  const names = new Set([
    bound,
    ...options.allowedHosts,
    ...signInDomains.map((domain) => parseHost(domain)?.name ?? domain),
  ]);
  // Addresses that stand for all of a machine's are no name of it.
  for (const every of ['0.0.0.0', '[::]']) names.delete(every);
  const origins = new Set([...allowedOrigins, ...signInDomains.map((domain) => `https://${domain}`)]);
  if (publicUrl !== null) {
    names.add(parseHost(new URL(publicUrl).host)?.name ?? publicUrl);
    origins.add(new URL(publicUrl).origin);
  }
  const judgesHost = onLoopback || publicUrl !== null || options.allowedHosts.length > 0;
  const isOurs = ({ name }: HostName) => isLoopback(name) || names.has(name);

  const originIsAllowed = (origin: string, host: HostName | null): boolean => {
    if (origins.has(origin)) return true;
    const [, scheme = '', authority = ''] = ORIGIN.exec(origin) ?? [];
    const from = parseHost(authority);
    if (from === null) return false;
    if (onLoopback && isLoopback(from.name)) return true;
    if (host === null || !isOurs(host) || host.name !== from.name) return false;
    const usual = DEFAULT_PORTS[scheme.toLowerCase()]!;
    return (host.port || usual) === (from.port || usual);
  };

  /** The last Host that was found to be ours: it is read as a URL is, on the way of every request. */
  let usual: string | null = null;

  return (headers, rawHeaders = []) => {
    if (isRepeated(rawHeaders)) return 'The Host or the Origin header was sent more than once: send it once';
    if (headers.origin === undefined && (!judgesHost || headers.host === usual)) return null;
    const host = parseHost(headers.host ?? '');
    if (judgesHost && (host === null || !isOurs(host)))
      return `The host ${quoted(headers.host ?? '')} is not one of this gateway's. A reverse proxy before it has to pass the client's Host on (nginx: proxy_set_header Host $host). If clients call it by this name: the operator adds it to server.allowed_hosts`;
    if (judgesHost) usual = headers.host ?? null;
    const { origin } = headers;
    if (origin !== undefined && !originIsAllowed(origin, host))
      return `Pages of ${quoted(origin)} may not call this gateway: the operator adds it to server.allowed_origins`;
    return null;
  };
}

const quoted = (text: string): string => `"${printable(text, 100)}"`;

function isRepeated(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  let origins = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    // Most names are told by their length alone.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 6 && name.toLowerCase() === 'origin') origins += 1;
  }
  return hosts > 1 || origins > 1;
}
