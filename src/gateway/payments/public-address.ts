import type { FastifyRequest } from 'fastify';

/**
 * The address that a request was made to, as its client knows it, without the query: what a payment is told to be for.
 */
export function publicAddress(
  { protocol, host, url }: Pick<FastifyRequest, 'protocol' | 'host' | 'url'>,
  publicUrl: string | null,
): string {
  const origin = publicUrl === null ? `${protocol}://${host}` : new URL(publicUrl).origin;
  return origin + url.split('?', 1)[0]!;
}
