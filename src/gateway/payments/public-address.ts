import type { FastifyRequest } from 'fastify';

/** The address of a request as its client knows it, without the query. Payment terms name it as the paid resource. */
export function publicAddress(
  { protocol, host, url }: Pick<FastifyRequest, 'protocol' | 'host' | 'url'>,
  publicUrl: string | null,
): string {
  const origin = publicUrl === null ? `${protocol}://${host}` : new URL(publicUrl).origin;
  return origin + url.split('?', 1)[0]!;
}
