import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';

/** All addresses of a host name. Rejects where it has none. */
export type OutboundLookup = (name: string) => Promise<readonly LookupAddress[]>;

/** By this machine's own ways: its hosts file, its search domains. */
export const lookupHere: OutboundLookup = (name) => lookup(name, { all: true });

const TIMEOUT_MS = 2_500;
const TRIES = 2;

interface PublicLookupOptions {
  /** Addresses of name servers, with a port where it is not 53; default those of this machine. */
  readonly servers?: readonly string[];
}

/**
 * By name servers alone. A name that a stranger chose is not looked for in this machine's files or search domains,
 * and one whose servers never answer takes no thread of the pool that the file system needs.
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
