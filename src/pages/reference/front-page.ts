import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parseHost } from '#wire';
import type { Primitive } from '#config';
import { FRONT_SCRIPT, frontDocument, THEME_PATH } from './front-document.ts';
import { FRONT_STYLE } from './front-style.ts';
import { ICON } from './icon.ts';

const CACHED = 'public, max-age=86400';

export interface FrontPageOptions {
  readonly version: string;
  /** The configured address of the gateway. */
  readonly publicUrl: string | null;
  /** How many services of a kind there are. */
  readonly count?: (kind: Primitive) => number;
}

/** `GET /`: what this host is and where to go, as one document. It is there also where the web pages are not. */
export function frontPage({ version, publicUrl, count }: FrontPageOptions): (app: FastifyInstance) => Promise<void> {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy =
    `default-src 'none'; script-src 'self'; style-src ${hash(FRONT_STYLE)}; img-src 'self'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

  return async (app) => {
    app.get('/', { schema: { hide: true } }, async (request, reply) =>
      reply
        .header('content-type', 'text/html; charset=utf-8')
        .header('content-security-policy', policy)
        .send(
          frontDocument({ version, address: publicUrl ?? addressOf(request), count: (kind) => count?.(kind) ?? null }),
        ),
    );
    app.get(THEME_PATH, { schema: { hide: true } }, async (_request, reply) =>
      reply.header('content-type', 'text/javascript; charset=utf-8').header('cache-control', CACHED).send(FRONT_SCRIPT),
    );
    app.get('/favicon.svg', { schema: { hide: true } }, async (_request, reply) =>
      reply.header('content-type', 'image/svg+xml').header('cache-control', CACHED).send(ICON),
    );
  };
}

/** The address of the request. An invalid host stays out of the page. */
function addressOf({ protocol, host }: FastifyRequest): string {
  return parseHost(host) === null ? '&lt;this address&gt;' : `${protocol}://${host}`;
}
