import type { LookupAddress } from 'node:dns';
import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { OutboundFailure } from './outbound-failure.ts';
import type { OutboundLookup } from './outbound-lookup.ts';

export interface Guard {
  /** Whether an address may be connected to. */
  readonly permits: (address: string) => boolean;
  readonly lookup: OutboundLookup;
}

/** The addresses of a host. Rejects with OutboundFailure if any of them is not permitted. */
export async function permittedAddresses(host: string, { permits, lookup }: Guard): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  const found = family === 0 ? await lookup(host) : [{ address: host, family }];
  if (found.length === 0 || !found.every(({ address }) => permits(address))) throw refusal();
  return found;
}

interface GuardedTarget {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** The result of `permittedAddresses` for the host. */
  readonly addresses: readonly LookupAddress[];
}

/**
 * Connects to one of the checked addresses without another DNS lookup, so that a name with changing answers (DNS
 * rebinding) gains nothing. The address of the open connection is checked once more.
 */
export function guardedConnect({ host, port, secure, addresses }: GuardedTarget, { permits }: Guard): Socket {
  const lookup: LookupFunction = (_name, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, first!.address, first!.family);
  };
  const options = { host, port, lookup, autoSelectFamily: true, noDelay: true };
  const servername = isIP(host) === 0 ? host : '';
  const socket = secure ? connectTls({ ...options, servername, ALPNProtocols: ['http/1.1'] }) : connectPlain(options);
  socket.once('connect', () => {
    if (!permits(socket.remoteAddress ?? '')) socket.destroy(refusal());
  });
  return socket;
}

const refusal = () => new OutboundFailure('the address is not one of the public internet', { refused: true });
