import type { FastifyRequest } from 'fastify';
import type { CardOrigin } from './card-pages.ts';

interface CardOriginOptions {
  /** Origin that the world reaches this gateway at; null where that is not known. */
  readonly publicUrl: string | null;
  /** Hosts that this gateway is known by, with a port where it is not the scheme's. */
  readonly domains: readonly string[];
}

const HOST = /^(?:[a-z0-9_][a-z0-9_.-]{0,252}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Finds the address for the card of a request: the operator's, else the one that the request was sent to. null for
 * a Host that is not valid.
 */
export function createCardOrigin({
  publicUrl,
  domains,
}: CardOriginOptions): (request: Pick<FastifyRequest, 'protocol' | 'host'>) => CardOrigin | null {
  const names = new Set(domains.map((domain) => domain.toLowerCase()));
  return ({ protocol, host }) => {
    if (publicUrl !== null) return { url: publicUrl, known: true };
    const url = HOST.test(host) ? URL.parse(`${protocol === 'https' ? 'https' : 'http'}://${host}`) : null;
    return url && { url: url.origin, known: names.has(url.host) };
  };
}
