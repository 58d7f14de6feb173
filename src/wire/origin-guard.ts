import type { IncomingHttpHeaders } from 'node:http';
import { printable } from './printable.ts';
import { isLoopback, parseHost, type HostName } from './host-name.ts';

/** The configuration of the gateway's host names. */
interface HostNames {
  readonly publicUrl: string | null;
  /** Domains of wallet sign-in, with a port if it is not the default port. */
  readonly signInDomains: readonly string[];
  /** The host that the gateway listens on. */
  readonly bindHost: string;
  /** Host names without a port. */
  readonly allowedHosts: readonly string[];
}

export interface OriginGuardOptions extends HostNames {
  /** Serialised origins. The origin `null` is allowed too. */
  readonly allowedOrigins: readonly string[];
}

/**
 * Returns the reason why a request must not be served, or null. `rawHeaders` is IncomingMessage.rawHeaders, which shows
 * a repeated Host. Node keeps the first Host, but a proxy in front of the gateway may have checked the last.
 */
type OriginGuard = (headers: IncomingHttpHeaders, rawHeaders?: readonly string[]) => string | null;

/** The host names that the operator has configured for this gateway, in the form of parseHost. */
export function configuredNames({ publicUrl, signInDomains, bindHost, allowedHosts }: HostNames): Set<string> {
  const names = new Set([
    boundName(bindHost),
    ...allowedHosts,
    ...signInDomains.map((domain) => parseHost(domain)?.name ?? domain),
  ]);
  // Addresses that mean all interfaces are not host names of the gateway.
  for (const every of ['0.0.0.0', '[::]']) names.delete(every);
  if (publicUrl !== null) names.add(parseHost(new URL(publicUrl).host)?.name ?? publicUrl);
  return names;
}

const boundName = (host: string): string => parseHost(host.includes(':') ? `[${host}]` : host)?.name ?? host;

const ORIGIN = /^(https?):\/\/([^/]+)$/i;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * Refuses requests that a stranger's web page can make a browser send: requests with a foreign Origin, and requests to
 * a stranger's host name that resolves to this gateway (DNS rebinding). With DNS rebinding the browser sees one origin
 * for the page and the gateway, so only the host name shows the attack. Origin is always checked. Host is not checked
 * if the gateway listens on the network and no names are configured for it. The port of Host is not checked, because
 * rebinding changes names only.
 */
export function createOriginGuard(options: OriginGuardOptions): OriginGuard {
  const { publicUrl, signInDomains, bindHost, allowedOrigins } = options;
  const onLoopback = isLoopback(boundName(bindHost));
  const names = configuredNames(options);
  const origins = new Set([...allowedOrigins, ...signInDomains.map((domain) => `https://${domain}`)]);
  if (publicUrl !== null) origins.add(new URL(publicUrl).origin);
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

  /** The last accepted Host. Parsing it for every request would cost a URL parse. */
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
    // Most header names are ruled out by their length.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
    else if (name.length === 6 && name.toLowerCase() === 'origin') origins += 1;
  }
  return hosts > 1 || origins > 1;
}
