import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * Whether an address is one of the load balancers in front of this gateway, whose word for where a client is counts.
 */
export type Trust = (address: string) => boolean;

/** Trusts IP addresses and networks in CIDR form. */
export function createTrust(proxies: readonly string[]): Trust {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    const family = familyOf(address);
    if (bits === undefined) list.addAddress(withoutZone(address), family);
    else list.addSubnet(withoutZone(address), Number(bits), family);
  }
  // What a header names need not be an address.
  return (address) => isIP(address) !== 0 && list.check(withoutZone(address), familyOf(address));
}

/**
 * The address of a request's client: the socket's other end, or, where that is a trusted proxy, the last address of
 * X-Forwarded-For that is not one. For requests that Fastify never sees, such as upgrades; its `request.ip` is the
 * same.
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
