import { existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config, ClusterConfig } from '#config';
import { CliError } from '../terminal.ts';
import { refuseUnreadable, findGateway, ownAddresses } from '../discovery.ts';
import { OWN_NAME } from '../command-line.ts';

/**
 * Checks what a start needs and can be known before anything is created: that it may read its data directory, its
 * ports, and the wallets of its treasuries. Rejects with CliError or WalletError.
 */
export async function checkStart(config: Config, workers: number): Promise<void> {
  refuseUnreadable(config.dataDir);
  const faults = await listenFaults(config, workers);
  if (faults.length > 0) throw new CliError(faults.join('\n'));
  await checkTreasuries(config);
}

/** Loads the wallet of each treasury, and returns their addresses by chain. Rejects with WalletError. */
export async function checkTreasuries({ chains }: Pick<Config, 'chains'>): Promise<ReadonlyMap<string, string>> {
  const addresses = chains.map(async ({ network, payments }) => {
    if (payments === null) return [];
    // Loaded here, because most gateways have no treasury.
    const { loadWallet, WalletError } = await import('#proxy/wallet');
    try {
      const { address } = await loadWallet({ chainId: network, ...payments.treasury }, OWN_NAME);
      return [[network, address] as const];
    } catch (error) {
      if (!(error instanceof WalletError)) throw error;
      throw new WalletError(`The treasury of ${network}: ${error.message}`, { cause: error });
    }
  });
  return new Map((await Promise.all(addresses)).flat());
}

/** A data directory in which nothing is when the start begins. null if something is in it. */
export function freshDirectory({ dataDir, databaseUrl }: Pick<Config, 'dataDir' | 'databaseUrl'>) {
  const folder = resolve(dataDir);
  // A file in the place of the directory is no directory to clear: the start says what is wrong with it.
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0)) return null;
  const folders = missingFolders(folder);
  return {
    /**
     * Removes what a failed start has made in it, and the folders that were made for it. Removes nothing if another
     * gateway uses it meanwhile, or if a PostgreSQL database may already know the identity that was made.
     */
    clear(error: unknown): void {
      const isUsed = (error as { readonly code?: unknown } | null)?.code === 'in_use';
      const isKnown = databaseUrl !== null && existsSync(join(folder, 'identity.json'));
      if (isUsed || isKnown || !existsSync(folder) || existsSync(join(folder, 'gateway.json'))) return;
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
      for (const one of folders) if (readdirSync(one).length === 0) rmdirSync(one);
    },
  };
}

/** The folder and those above it that do not exist, the innermost first. */
const missingFolders = (folder: string): readonly string[] =>
  existsSync(folder) ? [] : [folder, ...missingFolders(dirname(folder))];

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

type ListenAddress = Pick<ClusterConfig, 'host' | 'port'>;

/** A gateway listens for others only if it has an address for them and PostgreSQL. Workers take the ports upwards. */
function clusterListeners(
  { cluster: { url, host, port }, databaseUrl }: Config,
  workers: number,
): readonly ListenAddress[] {
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
  { cluster: { host, port } }: { readonly cluster: ListenAddress },
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
