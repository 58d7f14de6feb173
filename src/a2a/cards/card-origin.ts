import { type RequestedAddress, type OwnOrigin, parseHost } from '#wire';
import type { CardOrigin } from './card-pages.ts';

interface CardOriginOptions {
  /** The public origin of this gateway; null if it is not known. */
  readonly publicUrl: string | null;
  /** The host names of this gateway, with a port if it is not the default of the scheme. */
  readonly domains: readonly string[];
  readonly ownOrigin: OwnOrigin;
  /** The origin at which the gateway listens; null if it listens at every address of its machine. */
  readonly listening: () => string | null;
}

/** The error for a request whose card can name no origin. */
export const NO_ORIGIN =
  'The Host header is not a name of this gateway that an agent card can have: send an IP address of the gateway, or a name that it knows. If clients use this name, the operator sets server.public_url';

/**
 * Finds the origin for the card of a request: the operator's public URL, else the Host of the request if that is the
 * gateway's, else where the gateway listens. null if that is at every address, or if the Host is not valid.
 */
export function createCardOrigin({
  publicUrl,
  domains,
  ownOrigin,
  listening,
}: CardOriginOptions): (request: RequestedAddress) => CardOrigin | null {
  const names = new Set(domains.map((domain) => domain.toLowerCase()));
  return (request) => {
    const own = ownOrigin(request);
    if (own !== null) return { url: own, known: publicUrl !== null || names.has(new URL(own).host) };
    const url = parseHost(request.host) === null ? null : listening();
    return url === null ? null : { url, known: false };
  };
}
