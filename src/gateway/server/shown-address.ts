import type { FastifyInstance, FastifyRequest } from 'fastify';
import { createOwnOrigin, type OwnOrigin } from '#wire';

declare module 'fastify' {
  interface FastifyInstance {
    ownOrigin: OwnOrigin;
  }
}

const NO_NAMES = createOwnOrigin({ publicUrl: null });

/** Gives the routes of a server its own origin. Default: a server that knows no names of itself. */
export function addOwnOrigin(server: FastifyInstance, ownOrigin: OwnOrigin = NO_NAMES): void {
  server.decorate('ownOrigin', ownOrigin);
}

/**
 * An address of this gateway for the answer to a request: that of the request itself, without its query, or that of
 * `path`. It has no origin if none is known, because the host of the request may be a stranger's. The server must have
 * its own origin, see addOwnOrigin.
 */
export function shownAddress(
  request: Pick<FastifyRequest, 'protocol' | 'host' | 'url' | 'server'>,
  path: string = request.url.split('?', 1)[0]!,
): string {
  return (request.server.ownOrigin(request) ?? '') + path;
}
