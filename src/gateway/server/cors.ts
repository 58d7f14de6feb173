import cors from '@fastify/cors';
import type { FastifyInstance } from 'fastify';

/** Response headers that a page's script may read: what calls cost, who answered, what to do next. */
const EXPOSED = [
  'Content-Disposition',
  'Mcp-Session-Id',
  'MCP-Protocol-Version',
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'Retry-After',
  'WWW-Authenticate',
  'idempotent-replayed',
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
  'x-tollgate-dropped',
];

const DAY_S = 86_400;

/**
 * Lets web pages of these origins call the gateway from their scripts. Credentials travel in headers that a page
 * sets itself; cookies are never allowed. With no origin, browsers keep all other pages out, and nothing is
 * registered. `*` is every origin.
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
