import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { databaseName } from '#store/database-name';
import { processStart } from './process-start.ts';

/** `<data>/gateway.json`: tells the commands on this machine how to reach the gateway that uses this data directory. */
export interface GatewayFile {
  readonly base_url: string;
  readonly admin_key: string;
  readonly pid: number;
  /**
   * When that process began, in a form that depends on the system; null if the system does not tell. It distinguishes
   * the process from a later one with the same id.
   */
  readonly started: string | null;
  /** The directory that the file was written in. A copy of the file elsewhere is not valid there. */
  readonly data_dir: string;
  /** The database that the gateway uses, without credentials. See `databaseName`. */
  readonly database: string;
  /** Path of its configuration file; null if it has none. */
  readonly config: string | null;
}

/** The content of a directory's `gateway.json`, checked. */
interface Discovered {
  /** null if no gateway was started, its process has ended, or the file belongs to another directory. */
  readonly gateway: GatewayFile | null;
  /** The directory that a copied file came from; null if it is not a copy. */
  readonly copiedFrom: string | null;
}

/** `<data>/dev.json`: everything that a client needs to use the development gateway. */
interface DevFile {
  readonly base_url: string;
  readonly api_key: string;
  readonly admin_key: string;
}

const GATEWAY = 'gateway.json';
const DEV = 'dev.json';

/** Records that this process is the gateway of a data directory. `configFile`: the file that it was started with. */
export function writeGatewayFile(
  {
    dataDir,
    databaseUrl,
    adminKey,
  }: { readonly dataDir: string; readonly databaseUrl: string | null; readonly adminKey: string },
  { baseUrl, configFile }: { readonly baseUrl: string; readonly configFile: string | null },
): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const content: GatewayFile = {
    base_url: baseUrl,
    admin_key: adminKey,
    pid: process.pid,
    started: processStart(process.pid),
    data_dir: realPath(dataDir),
    database: databaseName(databaseUrl),
    config: configFile === null ? null : realPath(configFile),
  };
  writeSecretFile(dataDir, GATEWAY, content);
}

export const writeDevFile = (dataDir: string, content: DevFile) => writeSecretFile(dataDir, DEV, content);

/** Removes the file, unless another gateway has meanwhile written its own. */
export function removeGatewayFile(dataDir: string): void {
  if (readFields(dataDir, GATEWAY)?.['pid'] === process.pid) rmSync(join(dataDir, GATEWAY), { force: true });
}

/** Looks for the gateway that runs on this data directory. */
export function findGateway(dataDir: string): Discovered {
  const { base_url, admin_key, pid, started, data_dir, database, config } = readFields(dataDir, GATEWAY) ?? {};
  const none = { gateway: null, copiedFrom: null };
  if (typeof base_url !== 'string' || typeof admin_key !== 'string' || typeof pid !== 'number') return none;
  if (typeof data_dir !== 'string' || typeof database !== 'string') return none;
  if (data_dir !== realPath(dataDir)) return { gateway: null, copiedFrom: data_dir };
  if (!isAlive(pid) || (typeof started === 'string' && processStart(pid) !== started)) return none;
  const file = { base_url, admin_key, pid, started: typeof started === 'string' ? started : null, data_dir, database };
  return { gateway: { ...file, config: typeof config === 'string' ? config : null }, copiedFrom: null };
}

/** The address and the key of the last start of a development gateway. Null if no start has left them. */
export function readDevFile(dataDir: string): Pick<DevFile, 'base_url' | 'api_key'> | null {
  const { base_url, api_key } = readFields(dataDir, DEV) ?? {};
  return typeof base_url === 'string' && typeof api_key === 'string' ? { base_url, api_key } : null;
}

/**
 * Writes a file that only its owner can read, from the first byte on. It is written under another name and renamed, so
 * that a reader sees either the old or the new content, never a part.
 */
function writeSecretFile(dataDir: string, name: string, content: object): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, name);
  const aside = `${path}.${process.pid}`;
  rmSync(aside, { force: true });
  writeFileSync(aside, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(aside, path);
}

function readFields(dataDir: string, name: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(dataDir, name), 'utf8'));
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process lives, but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The same path for the same file, however it was named. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
