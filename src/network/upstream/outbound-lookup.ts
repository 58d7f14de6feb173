import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';

/** All addresses of a host name. Rejects if it has none. */
export type OutboundLookup = (name: string) => Promise<readonly LookupAddress[]>;

/** Looks up with the resolver of this machine, which uses the hosts file and search domains. */
export const lookupHere: OutboundLookup = (name) => lookup(name, { all: true });

const TIMEOUT_MS = 2_500;
const TRIES = 2;

interface PublicLookupOptions {
  /** Addresses of name servers, with a port if it is not 53. Default: those of this machine. */
  readonly servers?: readonly string[];
}

/**
 * Looks up by name servers alone. An untrusted name is not searched in this machine's hosts file or search domains. A
 * name whose servers never answer does not occupy a thread of the pool, which the file system needs.
 */
export function createPublicLookup({ servers }: PublicLookupOptions = {}): OutboundLookup {
  return async (name) => {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = [
      ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 })) : []),
      ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (found.length === 0) throw v4.status === 'rejected' ? v4.reason : new Error('the name has no address');
    return found;
  };
}
