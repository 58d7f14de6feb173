import type { FastifyInstance } from 'fastify';
import type { Config } from '#config';

interface OwnUrlParts {
  readonly config: Pick<Config, 'publicUrl' | 'mode'>;
  readonly server: FastifyInstance;
}

/**
 * The public address of this gateway. null if it is not configured, or if a development gateway does not listen yet.
 */
export const ownUrlOf = ({ config, server }: OwnUrlParts): string | null =>
  config.publicUrl ?? (config.mode === 'development' ? listeningAt(server, '127.0.0.1') : null);

/** Addresses to listen on that mean all addresses of the machine. */
export const LISTENS_EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The server's origin at `host`, an address on which it listens. null before it listens. */
export function listeningAt({ server }: FastifyInstance, host: string): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
