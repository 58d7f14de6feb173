import { existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '#config';
import { loadWallet, WalletError } from '#provide/wallet';
import { CliError } from './cli-error.ts';
import { refuseUnreadable } from './data-directory.ts';
import { listenFaults } from './listen-faults.ts';
import { OWN_NAME } from './own-name.ts';

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

/** A data directory in which nothing was when the start began. */
interface FreshDirectory {
  /**
   * Removes what a failed start has made in it, and the folders that were made for it. Removes nothing if another
   * gateway uses it meanwhile, or if a PostgreSQL database may already know the identity that was made.
   */
  clear(error: unknown): void;
}

/** The data directory as one that can be cleared. null if something is in it. */
export function freshDirectory({
  dataDir,
  databaseUrl,
}: Pick<Config, 'dataDir' | 'databaseUrl'>): FreshDirectory | null {
  const folder = resolve(dataDir);
  // A file in the place of the directory is no directory to clear: the start says what is wrong with it.
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0)) return null;
  const made = missingFolders(folder);
  return {
    clear(error) {
      const isUsed = (error as { readonly code?: unknown } | null)?.code === 'in_use';
      const isKnown = databaseUrl !== null && existsSync(join(folder, 'identity.json'));
      if (isUsed || isKnown || !existsSync(folder) || existsSync(join(folder, 'gateway.json'))) return;
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
      for (const one of made) if (readdirSync(one).length === 0) rmdirSync(one);
    },
  };
}

/** The folder and those above it that do not exist, the innermost first. */
const missingFolders = (folder: string): readonly string[] =>
  existsSync(folder) ? [] : [folder, ...missingFolders(dirname(folder))];
