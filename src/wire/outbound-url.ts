import { isIP } from 'node:net';
import { isPublicAddress } from './outbound-addresses.ts';

interface OutboundUrlOptions {
  /** For development: allows http, any port, and loopback and private hosts. */
  readonly allowPrivate: boolean;
}

const OUTBOUND_URL_CHARS_MAX = 2_048;

/**
 * Host names of private networks, which public name servers should not know (RFC 6761, 6762, 8375 and common practice).
 */
const CLOSED_NAMES =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|lan|home|corp|private|home\.arpa|ip6-(?:localhost|loopback))$/;

/** Ports from 1024 on to which browsers also refuse to speak HTTP (the Fetch Standard's bad ports). */
const BAD_PORTS: ReadonlySet<number> = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080,
]);

/**
 * The fault of an untrusted callback URL, in words that follow the name of the field ("must begin with https://"); null
 * for a valid URL. It checks only the text. The addresses of the host are checked at every call.
 */
export function outboundUrlFault(text: string, { allowPrivate }: OutboundUrlOptions): string | null {
  if (text.length > OUTBOUND_URL_CHARS_MAX) return `is longer than ${OUTBOUND_URL_CHARS_MAX} characters`;
  const url = URL.parse(text);
  if (!url) return 'is not an absolute URL such as https://example.com/hook';
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    return `must begin with https://${allowPrivate ? ' or http://' : ''}`;
  if (url.username !== '' || url.password !== '') return 'must not contain a user or a password';
  if (url.port === '0') return 'must not have the port 0';
  if (allowPrivate) return null;
  const port = Number(url.port || 443);
  if (port !== 443 && (port < 1_024 || BAD_PORTS.has(port)))
    return 'must have the port 443, or a port from 1024 that is not reserved for another protocol';
  return isPublicName(hostOf(url)) ? null : 'must name a host of the public internet';
}

/**
 * True if a text is an HTTP URL whose host is visibly not public, without name resolution. It is for URLs that others
 * fetch. They must refuse any other text themselves.
 */
export function namesPrivateHost(text: string): boolean {
  if (text.startsWith('data:')) return false;
  const url = URL.parse(text.slice(0, OUTBOUND_URL_CHARS_MAX));
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') && !isPublicName(hostOf(url));
}

/**
 * The host in the form that a resolver takes: without brackets and without a trailing dot. URL has already turned
 * decimal, octal and hexadecimal forms into plain addresses.
 */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

function isPublicName(host: string): boolean {
  if (isIP(host) !== 0) return isPublicAddress(host);
  return host.includes('.') && !CLOSED_NAMES.test(host);
}
