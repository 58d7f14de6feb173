import { isIP, BlockList } from 'node:net';

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

/**
 * IPv4 networks that are not part of the public internet (IANA special-purpose registry), and addresses of cloud
 * metadata services.
 */
const CLOSED_V4: readonly (readonly [network: string, bits: number])[] = [
  ['0.0.0.0', 8], // this network, unspecified
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT; metadata of one cloud is at 100.100.100.200
  ['127.0.0.0', 8], // loopback
  ['168.63.129.16', 32], // looks public, but is the host of a virtual machine in one cloud
  ['169.254.0.0', 16], // link-local; metadata of most clouds
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments; metadata of one cloud is at 192.0.0.192
  ['192.0.2.0', 24], // documentation
  ['192.31.196.0', 24], // AS112
  ['192.52.193.0', 24], // AMT
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['192.175.48.0', 24], // AS112
  ['198.18.0.0', 15], // benchmarking
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, broadcast
];

/** Closed networks inside 2000::/3, the only part of IPv6 that is assigned to the public internet so far. */
const CLOSED_V6: readonly (readonly [network: string, bits: number])[] = [
  ['2001::', 23], // protocol assignments: Teredo, benchmarking, ORCHID
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4, which holds an IPv4 address
  ['3fff::', 20], // documentation
];

/** IPv6 networks whose addresses lead to the IPv4 address in their last 32 bits: IPv4-mapped addresses, and NAT64. */
const HOLDING_V4: readonly (readonly [network: string, bits: number])[] = [
  ['::ffff:0:0', 96],
  ['64:ff9b::', 96],
];

const listOf = (networks: readonly (readonly [string, number])[], type: 'ipv4' | 'ipv6'): BlockList => {
  const list = new BlockList();
  for (const [network, bits] of networks) list.addSubnet(network, bits, type);
  return list;
};

const closedV4 = listOf(CLOSED_V4, 'ipv4');
const closedV6 = listOf(CLOSED_V6, 'ipv6');
const openV6 = listOf([['2000::', 3]], 'ipv6');
const holdingV4 = listOf(HOLDING_V4, 'ipv6');

/**
 * True if a text is an IP address of the public internet. False for loopback, private, cloud and reserved addresses,
 * for an address with a zone, and for any other text.
 */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return false;
  if (version === 4) return !closedV4.check(address, 'ipv4');
  if (holdingV4.check(address, 'ipv6')) return isPublicAddress(lastFourBytes(address));
  return openV6.check(address, 'ipv6') && !closedV6.check(address, 'ipv6');
}

/** The IPv4 address in the last 32 bits of an IPv6 address. */
function lastFourBytes(address: string): string {
  // The shortest form of the address ends in two hexadecimal groups, or in `::` for zeros.
  const tail = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::').at(-1)!.split(':').slice(-2);
  const [high = 0, low = 0] = [0, 0, ...tail.map((group) => Number.parseInt(group || '0', 16))].slice(-2);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/**
 * Moves the credentials of `https://user:password@host` into a header, because fetch refuses such a URL and writes it
 * into its error. They must be percent-encoded, else it throws URIError.
 */
export function withoutCredentials(from: string | URL): {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
} {
  const url = new URL(from);
  const { username, password } = url;
  if (username === '' && password === '') return { url: url.href, headers: {} };
  [url.username, url.password] = ['', ''];
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } };
}
