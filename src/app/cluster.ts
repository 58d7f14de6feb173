import type { Database } from '#store';
import type { Config } from '#config';
import type { Identity } from '#auth';
import { createPeerListener, createPeers, type PeerListener, type Tunnels } from '#network';
import type { Logger } from '#observe';

export interface ClusterDeps {
  readonly database: Database;
  readonly identity: Pick<Identity, 'secret'>;
  readonly logger: Logger;
  readonly session: Tunnels['session'];
}

/**
 * The way between gateways that share a database: where this one is reached by the others, and how it reaches them.
 * Both null for one that stands alone.
 */
export async function openCluster(
  { cluster }: Pick<Config, 'cluster'>,
  { database, identity, logger, session }: ClusterDeps,
): Promise<{ readonly peerListener: PeerListener | null; readonly peers: ReturnType<typeof createPeers> | null }> {
  const url = database.engine === 'postgres' ? cluster.url : null;
  if (url === null) return { peerListener: null, peers: null };
  const secret = cluster.secret === null ? identity.secret('cluster') : Buffer.from(cluster.secret);
  const peerListener = createPeerListener({
    secret,
    host: cluster.host,
    port: cluster.port,
    url,
    tunnels: { session },
  });
  await peerListener.listen();
  const onError = (node: { readonly url: string }, error: unknown) =>
    logger.warn({ err: error, gateway: node.url }, 'another gateway could not be reached');
  return { peerListener, peers: createPeers({ secret, onError }) };
}
