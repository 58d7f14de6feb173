import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/** True for the address of a trusted proxy in front of this gateway, whose X-Forwarded-For is believed. */
export type Trust = (address: string) => boolean;

/** `proxies` are IP addresses and networks in CIDR form. */
export function createTrust(proxies: readonly string[]): Trust {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = familyOf(address);
    if (bits === undefined) list.addAddress(withoutZone(address), family);
    else list.addSubnet(withoutZone(address), Number(bits), family);
  }
  // A header may contain any text instead of an address.
  return (hop) => {
    const address = withoutPort(hop);
    return isIP(address) !== 0 && list.check(withoutZone(address), familyOf(address));
  };
}

/**
 * Some proxies write the port of the client too, as in 192.0.2.1:50000 or [2001:db8::1]:50000. It differs with each
 * connection, so it is no part of who the client is.
 */
const withoutPort = (hop: string): string => {
  if (!hop.includes(':')) return hop;
  return /^\[([\da-f:.]+)\](?::\d+)?$/i.exec(hop)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(hop)?.[1] ?? hop;
};

/**
 * The address of a request's client: the remote address of the socket. If that is a trusted proxy, it is the last
 * address in X-Forwarded-For that is not a trusted proxy. It is for requests that Fastify does not see, such as
 * upgrades, and equals Fastify's `request.ip`.
 */
export function clientAddress(remote: string, forwarded: string | string[] | undefined, trust: Trust): string {
  let address = remote;
  const hops = String(forwarded ?? '').split(',');
  for (let hop = hops.pop(); hop !== undefined && hop.trim() !== '' && trust(address); hop = hops.pop())
    address = hop.trim();
  return address;
}

const familyOf = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4');
const withoutZone = (address: string) => address.split('%', 1)[0]!;

/** The network that identifies a client: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf(hop: string): string {
  const address = withoutPort(hop);
  if (!isIPv6(address)) return address;
  // An IPv4 client of a socket that listens on IPv4 and IPv6.
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice('::ffff:'.length);
  const [head = '', tail] = address.split('%', 1)[0]!.split('::', 2);
  const groups = head === '' ? [] : head.split(':');
  const right = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - right.length);
  return [...groups, ...Array.from({ length: zeros }, () => '0'), ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** How much of a level's text each of its networks has, the widest first: /24 and /32, or /48, /56 and /64. */
const CUTS_V4 = [7, 9];
const CUTS_V6 = [12, 14, 16];
const NETWORK_V6 = /^[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){3}$/;

/**
 * The networks that an address or its `networkOf` is in, from the widest to its own: /24 and /32 of IPv4, /48, /56 and
 * /64 of IPv6, because a site has many networks of 64 bits for nothing. Each is the beginning of the next, of digits
 * that any collation sorts alike. A name that is no address stands for itself.
 */
export function networkLevels(address: string): readonly string[] {
  const network = networkOf(address);
  if (isIPv4(network)) return levelsOfPath(`g${network.split('.').map(hexOf).join('')}`);
  if (!NETWORK_V6.test(network)) return [network];
  const groups = network.split(':');
  return levelsOfPath(groups.map((group) => group.padStart(4, '0')).join(''));
}

/** The levels of a text that networkLevels has as the last one. */
export const levelsOfPath = (path: string): readonly string[] =>
  (path.startsWith('g') ? CUTS_V4 : CUTS_V6).map((cut) => path.slice(0, cut));

const hexOf = (octet: string): string => Number(octet).toString(16).padStart(2, '0');

/** The place of an address: a network of 256 IPv4 addresses, or of 64 bits of IPv6, and never one device. */
export function placeOf(address: string): string {
  const network = networkOf(address);
  return network.includes('.') ? `${network.slice(0, network.lastIndexOf('.'))}.0/24` : `${network}::/64`;
}
