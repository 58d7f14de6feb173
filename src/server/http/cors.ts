import cors from '@fastify/cors';
import type { FastifyInstance } from 'fastify';

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
