import { BlockList, isIP } from 'node:net';

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
