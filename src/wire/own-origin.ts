import { isIP } from 'node:net';
import { parseHost } from './host-name.ts';

/** The parts of a request that show the address that its client used. Behind a trusted proxy: what the proxy says. */
export interface RequestedAddress {
  /** `http` or `https`. */
  readonly protocol: string;
  /** The host, with a port if it is not the default of the protocol. */
  readonly host: string;
}

/** Returns the origin of this gateway that may be shown in the answer to a request. null if no origin is known. */
export type OwnOrigin = (request: RequestedAddress) => string | null;

interface OwnOriginOptions {
  /** The origin in the configuration. null without one. */
  readonly publicUrl: string | null;
  /** Host names of this gateway, in the form of parseHost. */
  readonly names?: Iterable<string>;
  /** Called once, with the first host that could be public and is not known as this gateway's. */
  readonly onUnknownHost?: (host: string) => void;
}

/**
 * The gateway's own origin, for texts that people copy and clients store. It is the configured one. Without one it is
 * the host of the request, but only if no stranger can own that host: with a name of their own that leads to this
 * gateway, they would have visitors copy an address that they can later turn to a server of theirs.
 */
export function createOwnOrigin({ publicUrl, names = [], onUnknownHost }: OwnOriginOptions): OwnOrigin {
  const own = new Set(names);
  let told = false;
  return ({ protocol, host }) => {
    if (publicUrl !== null) return publicUrl;
    const asked = parseHost(host);
    if (asked === null) return null;
    if (own.has(asked.name) || isOnlyOurs(asked.name)) return originAt(protocol, asked);
    if (!told) onUnknownHost?.(host);
    told = true;
    return null;
  };
}

function originAt(protocol: string, { name, port }: { readonly name: string; readonly port: string }): string | null {
  const scheme = protocol === 'https' ? 'https' : 'http';
  return URL.parse(`${scheme}://${name}${port === '' ? '' : `:${port}`}`)?.origin ?? null;
}

/**
 * Ends of names that nobody can register: reserved ones (RFC 6761, 6762, 8375, and `internal` by ICANN), and ones of
 * private networks and of Kubernetes that do not exist in the public DNS.
 */
const PRIVATE_ENDS = [
  'localhost',
  'local', // mDNS, and `svc.cluster.local`
  'internal',
  'home.arpa',
  'test',
  'lan',
  'home',
  'corp',
  'intranet',
  'private',
  'svc', // the short names of Kubernetes: `gateway.default.svc`
];

/**
 * Whether a host means the same to the client and to this gateway, whatever public DNS says: an IP address, because the
 * client is connected to it; a name without a dot, such as `gateway` in a network of containers; and a name with a
 * private end.
 */
const isOnlyOurs = (name: string): boolean =>
  name.startsWith('[') ||
  isIP(name) !== 0 ||
  !name.includes('.') ||
  PRIVATE_ENDS.some((end) => name.endsWith(`.${end}`));
