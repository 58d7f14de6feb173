import { BlockList, isIP } from 'node:net';

/**
 * Networks that nobody on the public internet is reached at (IANA special-purpose registry), and those where clouds
 * keep their metadata.
 */
const CLOSED_V4: readonly (readonly [network: string, bits: number])[] = [
  ['0.0.0.0', 8], // this network, unspecified
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT; metadata of one cloud is at 100.100.100.200
  ['127.0.0.0', 8], // loopback
  ['168.63.129.16', 32], // a public address by its look, the host of a virtual machine by its use in one cloud
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

/** Inside 2000::/3, which is all of IPv6 that is given to the internet so far. */
const CLOSED_V6: readonly (readonly [network: string, bits: number])[] = [
  ['2001::', 23], // protocol assignments: Teredo, benchmarking, ORCHID
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4, which holds an IPv4 address
  ['3fff::', 20], // documentation
];

/** IPv6 forms that lead to the IPv4 address in their last 32 bits: mapped, and NAT64 of networks without IPv4. */
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
 * Whether an IP address is one of the public internet: not of this machine, its networks, its cloud, nor set aside
 * for any other use. What is no address, and one with a zone, is not.
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
  // In its shortest form it ends in two hexadecimal groups, or in `::` for zeros.
  const tail = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::').at(-1)!.split(':').slice(-2);
  const [high = 0, low = 0] = [0, 0, ...tail.map((group) => Number.parseInt(group || '0', 16))].slice(-2);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
