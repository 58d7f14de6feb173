import { once } from 'node:events';
import { createServer } from 'node:net';
import type { ClusterConfig, Config } from '#config';
import { CliError } from './cli-error.ts';
import { findGateway } from './discovery.ts';
import { ownAddresses } from './this-machine.ts';

/**
 * Tries the ports that a gateway with this configuration would listen on, and closes them again. Resolves to one
 * message for each that it could not have. `workers`: how many processes it would have, each with a port of its own for
 * other gateways; 0 for a gateway of one process. A port that the gateway of this data directory holds now is in order,
 * because that gateway is the one that will be replaced or reloaded.
 */
export async function listenFaults(config: Config, workers: number): Promise<readonly string[]> {
  const { host, port } = config;
  const { gateway } = findGateway(config.dataDir);
  const faults: string[] = [];
  if (gateway === null || Number(new URL(gateway.base_url).port || 80) !== port)
    faults.push(...(await tryPort({ host, port }, (error) => explainListen(error, config))));
  // Its file does not name the port for other gateways, so a port that is taken is believed to be its own.
  for (const listener of clusterListeners(config, workers))
    faults.push(
      ...(await tryPort(listener, (error) =>
        gateway !== null && (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
          ? null
          : explainClusterListen(error, { cluster: listener }),
      )),
    );
  return faults;
}

async function tryPort(
  { host, port }: { readonly host: string; readonly port: number },
  explain: (error: unknown) => unknown,
): Promise<readonly string[]> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
  } catch (error) {
    const explained = explain(error);
    return explained instanceof Error ? [explained.message] : [];
  }
  server.close();
  await once(server, 'close');
  return [];
}

type Listener = Pick<ClusterConfig, 'host' | 'port'>;

/** A gateway listens for others only if it has an address for them and PostgreSQL. Workers take the ports upwards. */
function clusterListeners({ cluster: { url, host, port }, databaseUrl }: Config, workers: number): readonly Listener[] {
  if (url === null || databaseUrl === null) return [];
  return Array.from({ length: Math.max(1, workers) }, (_, slot) => ({ host, port: port === 0 ? 0 : port + slot }));
}

/** Makes an error of the listener for clients one that says what to do. Any other error is returned as it is. */
export function explainListen(error: unknown, { host, port }: Config): unknown {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new CliError(
        `Port ${port} on ${host} is taken by another program${port === 8402 ? ', perhaps by another tollgate' : ''}.\n` +
          `Use another port:   --port ${port + 1}, or PORT=${port + 1} in the environment\n` +
          `See who has it:     lsof -i :${port}`,
        { cause: error },
      );
    case 'EACCES':
      return new CliError(
        `Port ${port} needs rights that this user does not have.\nUse one above 1023:   --port 8402, or PORT=8402 in the environment`,
        { cause: error },
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND': {
      const known = ownAddresses().filter((address) => !address.startsWith('fe80'));
      return new CliError(
        `This machine has no address ${host}.\nHOST can be 127.0.0.1, 0.0.0.0 (all), or one of: ${known.join(', ')}`,
        {
          cause: error,
        },
      );
    }
    default:
      return error;
  }
}

/**
 * The same for the listener for other gateways. It opens while the app is built, so the error may be of something else.
 */
export function explainClusterListen(
  error: unknown,
  { cluster: { host, port } }: { readonly cluster: Listener },
): unknown {
  const { code, syscall, hostname } = error as NodeJS.ErrnoException & { readonly hostname?: string };
  if (syscall !== 'listen' && hostname !== host) return error;
  const words = (fault: string, advice: string) =>
    new CliError(`The listener for the other gateways of the database cannot be opened: ${fault}.\n${advice}`, {
      cause: error,
    });
  switch (code) {
    case 'EADDRINUSE':
      return words(
        `port ${port} on ${host} is taken by another program`,
        `Use another port:   cluster.port or TOLLGATE_CLUSTER_PORT, and the same port in cluster.url\n` +
          `See who has it:     lsof -i :${port}`,
      );
    case 'EACCES':
      return words(
        `port ${port} needs rights that this user does not have`,
        'Use one above 1023:   cluster.port or TOLLGATE_CLUSTER_PORT, and the same port in cluster.url',
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return words(
        `this machine has no address ${host}`,
        'Set cluster.host or TOLLGATE_CLUSTER_HOST to an address of this machine, or to 0.0.0.0 for all',
      );
    default:
      return error;
  }
}
