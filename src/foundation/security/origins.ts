import { isIP } from 'node:net';
import type { IncomingHttpHeaders } from 'node:http';
import { printable } from './safe-text.ts';

/* Names of hosts, the origin under which this gateway is reached, and the check of the headers Origin and Host. */

interface HostName {
  /** Lower case, without a trailing dot. Addresses are in their shortest form, IPv6 in brackets. */
  readonly name: string;
  /** The port's digits; empty without a port. */
  readonly port: string;
}

/**
 * Letters, digits, hyphens, underscores and dots, or an IPv6 address in brackets. No user, no percent-encoding, no
 * other alphabet.
 */
const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,253}))(?::(\d{1,5}))?$/i;

/** Parses `host` or `host:port`; null for anything else. */
export function parseHost(text: string): HostName | null {
  const [, host, port = ''] = HOST.exec(text) ?? [];
  if (host === undefined) return null;
  const name = URL.parse(`http://${host}/`)?.hostname.replace(/\.$/, '');
  if (name === undefined || name === '') return null;
  return { name, port };
}

/** True if a host name, in the form of parseHost or URL, is a loopback name or address. */
export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}

/**
 * True if keys and metadata may be fetched from this URL: https, or http to a loopback host. No credentials and no
 * fragment.
 */
export function isIssuerUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

/** The parts of a request that show the address that its client used. Behind a trusted proxy: what the proxy says. */
export interface RequestedAddress {
  /** `http` or `https`. */
  readonly protocol: string;
  /** The host, with a port if it is not the default of the protocol. */
  readonly host: string;
}

/** Returns the origin of this gateway that may be shown in the answer to a request. null if no origin is known. */
export type OwnOrigin = (request: RequestedAddress) => string | null;

interface OwnOriginOptions {
  /** The origin in the configuration. null without one. */
  readonly publicUrl: string | null;
  /** Host names of this gateway, in the form of parseHost. */
  readonly names?: Iterable<string>;
  /** Called once, with the first host that could be public and is not known as this gateway's. */
  readonly onUnknownHost?: (host: string) => void;
}

/**
 * The gateway's own origin, for texts that people copy and clients store. It is the configured one. Without one it is
 * the host of the request, but only if no stranger can own that host: with a name of their own that leads to this
 * gateway, they would have visitors copy an address that they can later turn to a server of theirs.
 */
export function createOwnOrigin({ publicUrl, names = [], onUnknownHost }: OwnOriginOptions): OwnOrigin {
  const own = new Set(names);
  let isReported = false;
  return ({ protocol, host }) => {
    if (publicUrl !== null) return publicUrl;
    const requestHost = parseHost(host);
    if (requestHost === null) return null;
    if (own.has(requestHost.name) || isOnlyOurs(requestHost.name)) return originAt(protocol, requestHost);
    if (!isReported) onUnknownHost?.(host);
    isReported = true;
    return null;
  };
}

function originAt(protocol: string, { name, port }: { readonly name: string; readonly port: string }): string | null {
  const scheme = protocol === 'https' ? 'https' : 'http';
  return URL.parse(`${scheme}://${name}${port === '' ? '' : `:${port}`}`)?.origin ?? null;
}

/**
 * Ends of names that nobody can register: reserved ones (RFC 6761, 6762, 8375, and `internal` by ICANN), and ones of
 * private networks and of Kubernetes that do not exist in the public DNS.
 */
const PRIVATE_ENDS = [
  'localhost',
  'local', // mDNS, and `svc.cluster.local`
  'internal',
  'home.arpa',
  'test',
  'lan',
  'home',
  'corp',
  'intranet',
  'private',
  'svc', // the short names of Kubernetes: `gateway.default.svc`
];

/**
 * Whether a host means the same to the client and to this gateway, whatever public DNS says: an IP address, because the
 * client is connected to it; a name without a dot, such as `gateway` in a network of containers; and a name with a
 * private end.
 */
const isOnlyOurs = (name: string): boolean =>
  name.startsWith('[') ||
  isIP(name) !== 0 ||
  !name.includes('.') ||
  PRIVATE_ENDS.some((end) => name.endsWith(`.${end}`));

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
