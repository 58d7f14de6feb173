import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { OwnOrigin } from '#security';
import type { Primitive } from '#config';
import { FIRST_SCRIPT, FIRST_SCRIPT_PATH, ICON } from './page-parts.ts';

const CACHED = 'public, max-age=86400';

export interface FrontPageOptions {
  readonly version: string;
  /** The gateway's address for the visitor of a page. */
  readonly ownOrigin: OwnOrigin;
  readonly count?: (kind: Primitive) => number;
}

/** `GET /`: one document that says what this host is and where to go. It works also if the web pages are missing. */
export function frontPage({ version, ownOrigin, count }: FrontPageOptions): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    // Loaded at the first visit, so that it doesn't delay the start.
    let parts: ReturnType<typeof load> | null = null;
    app.get('/', { schema: { hide: true } }, async (request, reply) => {
      const { frontDocument, policy } = await (parts ??= load());
      return reply
        .header('content-type', 'text/html; charset=utf-8')
        .header('content-security-policy', policy)
        .send(
          frontDocument({
            version,
            address: ownOrigin(request) ?? '&lt;this address&gt;',
            count: (kind) => count?.(kind) ?? null,
          }),
        );
    });
    app.get(FIRST_SCRIPT_PATH, { schema: { hide: true } }, async (_request, reply) =>
      reply.header('content-type', 'text/javascript; charset=utf-8').header('cache-control', CACHED).send(FIRST_SCRIPT),
    );
    app.get('/favicon.svg', { schema: { hide: true } }, async (_request, reply) =>
      reply.header('content-type', 'image/svg+xml').header('cache-control', CACHED).send(ICON),
    );
  };
}

async function load() {
  const { frontDocument, FRONT_STYLE } = await import('./front-document.ts');
  return { frontDocument, policy: policyFor(FRONT_STYLE) };
}

function policyFor(style: string): string {
  const hash = createHash('sha256').update(style).digest('base64');
  return (
    `default-src 'none'; script-src 'self'; style-src 'sha256-${hash}'; img-src 'self'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  );
}
