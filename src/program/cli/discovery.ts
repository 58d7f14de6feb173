import {
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
  accessSync,
  constants,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { databaseName } from '#store/database-name';
import { isLoopback } from '#security';
import { CliError } from './terminal.ts';

/* How commands find the gateway of a data directory, and its database: by the files that it writes there. */

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

/** Index of field 22 of /proc/<pid>/stat, counted from the field after the command's name, which may contain spaces. */
const START_FIELD = 19;

/**
 * When a process began, as text to compare. Two processes with the same id have different texts. Null if there is no
 * such process, or the system does not tell.
 */
function processStart(pid: number): string | null {
  if (process.platform === 'win32') return null;
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const ticks = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ', START_FIELD + 1)
        .at(START_FIELD);
      // The ticks count from the start of the system, so the id of that start is added.
      return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}:${ticks}`;
    }
    return (
      execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      }).trim() || null
    );
  } catch {
    return null;
  }
}

export const ownAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));

/**
 * Whether a URL names this machine by an address. A gateway writes its own URL so. A name such as `gateway.example`
 * could lead anywhere.
 */
export function isOnThisMachine(url: string): boolean {
  const name = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '') ?? '';
  return isLoopback(name) || ownAddresses().includes(name);
}

/**
 * Reads the address of a gateway. `source` is the option or variable that named it. `key` names the key that belongs
 * there instead of a user and a password, with its option, such as `admin key goes in --admin-key`. Throws CliError for
 * another text. The message repeats no credentials, because terminals and logs keep it.
 */
export function readAddress(text: string, source: string, key: string): URL {
  const address = /^https?:\/\//.test(text) ? URL.parse(text) : null;
  const hasCredentials = address === null ? text.includes('@') : `${address.username}${address.password}` !== '';
  if (hasCredentials) throw new CliError(`${source} contains a user or a password.\nRemove them. The ${key}.`);
  if (address === null)
    throw new CliError(`${source} is not the address of a gateway: ${text}\nGive it as http://127.0.0.1:8402`);
  return address;
}

/** Refuses another user's data directory, because it would look empty. */
export function refuseUnreadable(dataDir: string): void {
  // The start says what is wrong with a file in the place of the directory.
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
  } catch (error) {
    throw new CliError(
      `The data directory ${dataDir} belongs to another user.\nRun this as the user that runs the gateway, or name another directory (--data).`,
      { cause: error },
    );
  }
}

/** Words for a database and its data directory. `name` is that of `databaseName`. */
export function onDatabase(name: string, dataDir: string): string {
  return name === 'embedded'
    ? `on the embedded database in ${dataDir}`
    : `on PostgreSQL ${name}, data directory ${dataDir}`;
}
