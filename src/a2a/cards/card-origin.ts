import type { FastifyRequest } from 'fastify';
import type { CardOrigin } from './card-pages.ts';

interface CardOriginOptions {
  /** The public origin of this gateway; null if it is not known. */
  readonly publicUrl: string | null;
  /** The host names of this gateway, with a port if it is not the default of the scheme. */
  readonly domains: readonly string[];
}

const HOST = /^(?:[a-z0-9_][a-z0-9_.-]{0,252}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Finds the origin for the card of a request: the operator's public URL, else the Host of the request. null if the Host
 * is not valid.
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
