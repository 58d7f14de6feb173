import { networkInterfaces } from 'node:os';
import { isLoopback } from '#wire';

/** The addresses of this machine. */
export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));

/**
 * Whether a URL names this machine by an address. A gateway writes its own URL so. A name such as `gateway.example`
 * could lead anywhere.
 */
export function isOnThisMachine(url: string): boolean {
  const name = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '') ?? '';
  return isLoopback(name) || ownAddresses().includes(name);
}
