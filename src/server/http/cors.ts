import cors from '@fastify/cors';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** Response headers that scripts of a page may read: costs, provider, ids, limits. */
const EXPOSED = [
  'Content-Disposition',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'Retry-After',
  'WWW-Authenticate',
  'idempotent-replayed',
  'request-id',
  'x-cost-usd',
  'x-generation-id',
  'x-max-tokens',
  'x-provider',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
  'x-receipt',
  'x-request-id',
  'x-should-retry',
  'x-task-status',
  'x-tollgate-dropped',
  'x-tollgate-stops',
  'x-tollgate-wire',
];

const DAY_S = 86_400;

/**
 * Lets web pages of these origins call the gateway from their scripts. Credentials are in headers that a page sets
 * itself. Cookies are never allowed. Without origins nothing is registered, and browsers block all other pages. `*`
 * stands for every origin.
 */
export async function allowPages(server: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  await server.register(cors, {
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposedHeaders: EXPOSED,
    maxAge: DAY_S,
    credentials: false,
    // An OPTIONS request that is not a preflight is answered with the methods of the path.
    strictPreflight: false,
  });
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Pages of every origin may use the route, whatever the operator lists: no cookie counts there. */
    readonly anyPage?: true;
    /** `@fastify/cors` leaves the route alone. */
    readonly cors?: false;
  }
}

/** Lets every page use the routes with `anyPage`, and answers their preflights. Call it before any route is added. */
export function allowAnyPage(server: FastifyInstance): void {
  server.addHook('onRoute', function (route) {
    const { config, method, routePath, constraints, onRequest = [] } = route;
    if (config?.anyPage !== true || method === 'OPTIONS') return;
    const ownConfig = { ...config, cors: false } as const;
    route.config = ownConfig;
    route.onRequest = [openToPages, ...[onRequest].flat()];
    if (method === 'HEAD') return;
    this.route({
      method: 'OPTIONS',
      url: routePath,
      schema: { hide: true },
      config: ownConfig,
      ...(constraints ? { constraints } : {}),
      onRequest: openToPages,
      handler: (request, reply) => {
        const { 'access-control-request-headers': headers } = request.headers;
        void reply.headers({
          'access-control-allow-methods': [method].flat().join(', '),
          'access-control-max-age': DAY_S,
        });
        return reply
          .headers(headers === undefined ? {} : { 'access-control-allow-headers': headers })
          .code(204)
          .send();
      },
    });
  });
}

function openToPages(_request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  void reply.header('access-control-allow-origin', '*');
  done();
}
