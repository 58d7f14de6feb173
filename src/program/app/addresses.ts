import type { FastifyInstance } from 'fastify';
import { createOriginGuard } from '#security';
import type { Config } from '#config';

export const originGuardOf = (config: Config): ReturnType<typeof createOriginGuard> =>
  createOriginGuard({
    ...config,
    allowedOrigins: [...config.allowedOrigins, ...config.corsOrigins],
    signInDomains: config.signIn.domains,
    bindHost: config.host,
  });

/**
 * The public address of this gateway. null if it is not configured, or if a development gateway does not listen yet.
 */
export const ownUrlOf = (config: Config, server: FastifyInstance): string | null =>
  config.publicUrl ?? (config.mode === 'development' ? listeningAt(server, '127.0.0.1') : null);

export const originOf = (url: string | null): string | null => url && new URL(url).origin;

/** The page of the dashboard on which a person decides about a call. null if the gateway does not know its address. */
export function approvalPage(config: Config, server: FastifyInstance, id: string): string | null {
  const own = ownUrlOf(config, server);
  const dashboard = config.dashboardUrl ?? (own === null ? null : `${own}/dashboard`);
  return dashboard === null ? null : `${dashboard}/approvals?id=${id}`;
}

/** Addresses to listen on that mean all addresses of the machine. */
const LISTENS_EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The origin at which the gateway listens. null before it listens, and if it listens on all addresses. */
export const listeningOrigin = ({ host }: Config, server: FastifyInstance): string | null =>
  LISTENS_EVERYWHERE.has(host) ? null : listeningAt(server, host);

/** The server's origin at `host`, an address on which it listens. null before it listens. */
function listeningAt({ server }: FastifyInstance, host: string): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
