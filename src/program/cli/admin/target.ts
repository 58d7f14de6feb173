import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { printable } from '#security';
import { databaseName } from '#store/database-name';
import { type Config, loadConfig, type Environment } from '#config';
import { configPath, START } from '../command-line.ts';
import { CliError } from '../terminal.ts';
import {
  refuseUnreadable,
  readAddress,
  findGateway,
  realPath,
  type GatewayFile,
  isOnThisMachine,
  onDatabase,
} from '../discovery.ts';

export interface TargetFlags {
  readonly url?: string;
  readonly adminKey?: string;
  readonly data?: string;
  readonly config?: string;
}

/** The gateway or the database on which a command acts. */
interface AdminTarget {
  /** null: no gateway is asked, and the command opens the database of `config`. */
  readonly running: { readonly base: string; readonly key: string } | null;
  readonly config: Config;
  /** The target in words for people, without credentials: "At http://…". */
  readonly words: string;
}

interface TargetOptions {
  readonly create?: boolean;
  readonly local?: boolean;
  readonly placeOnly?: boolean;
}

/**
 * The names from flags, environment and file. A higher rank takes precedence: 2 for a flag, 1 for the environment, 0
 * for a default.
 */
interface Named {
  readonly config: Config;
  readonly file: string | null;
  readonly url: { readonly base: string; readonly source: string; readonly rank: number } | null;
  readonly data: { readonly source: string; readonly rank: number };
  readonly database: { readonly name: string; readonly source: string; readonly rank: number };
}

/**
 * Finds the target of a command: the gateway at `--url`, else the one that runs on the data directory, else the
 * database. A gateway that runs here is not used if the command names another database. Contradicting names are refused
 * with a CliError that says both. `create`: the embedded database may be missing. `local`: the command itself reads the
 * files, so the address of another gateway is refused. `placeOnly`: secrets of services and chains may be missing.
 */
export async function findTarget(
  flags: TargetFlags,
  { create = false, local = false, placeOnly = false }: TargetOptions = {},
): Promise<AdminTarget> {
  const names = readNames(flags, process.env, placeOnly);
  const { config } = names;
  const { gateway, copiedFrom } = findGateway(config.dataDir);
  const here = gateway !== null && (await isThere(gateway.base_url)) ? gateway : null;
  const keyGiven = flags.adminKey ?? config.adminKey;

  if (local) refuseElsewhere(names, here);
  else if (names.url) {
    const { base } = names.url;
    refuseRivals(names, here);
    const key = keyGiven ?? (here?.base_url === base ? here.admin_key : null);
    if (!key)
      throw new CliError(`The admin key of ${base} is not known.\nSet TOLLGATE_ADMIN_KEY, or give --admin-key.`);
    return { running: { base, key }, config, words: `At ${base}` };
  }
  if (here && uses(here, names, local)) {
    refuseAway(here, local);
    const words = `At ${here.base_url}, ${onDatabase(here.database, here.data_dir)}`;
    return { running: { base: here.base_url, key: keyGiven ?? here.admin_key }, config, words };
  }

  if (config.databaseUrl === null) refuseUnusable(config.dataDir, { create, local });
  const asides = [
    here ? `. The gateway at ${here.base_url} uses another one and is not asked` : '',
    copiedFrom === null ? '' : `. Its gateway.json is a copy from ${copiedFrom} and is not used`,
  ];
  return {
    running: null,
    config,
    words: `Directly ${onDatabase(databaseName(config.databaseUrl), realPath(config.dataDir))}${asides.join('')}`,
  };
}

function readNames(flags: TargetFlags, env: Environment, placeOnly: boolean): Named {
  const file = configPath(flags.config, 'serve', env);
  const fileRank = flags.config === undefined ? 1 : 2;
  const config = loadConfig({
    file,
    env,
    mode: 'production',
    placeOnly,
    overrides: { 'server.data_dir': flags.data },
  });
  const inFile = file === null ? null : { source: file, rank: fileRank };
  const unnamed = { source: 'the default', rank: 0 };
  const data =
    flags.data !== undefined
      ? { source: '--data', rank: 2 }
      : env['TOLLGATE_DATA']
        ? { source: 'TOLLGATE_DATA', rank: 1 }
        : inFile && config.dataDir !== DEFAULT_DATA
          ? inFile
          : unnamed;
  const database =
    config.databaseUrl === null
      ? unnamed
      : env['DATABASE_URL']
        ? { source: 'DATABASE_URL', rank: 1 }
        : (inFile ?? unnamed);
  return {
    config,
    file,
    url: readUrl(flags, env),
    data,
    database: { name: databaseName(config.databaseUrl), ...database },
  };
}
const DEFAULT_DATA = '.tollgate';

function readUrl(flags: TargetFlags, env: Environment): Named['url'] {
  const [text, source, rank] =
    flags.url === undefined ? [env['TOLLGATE_URL'], 'TOLLGATE_URL', 1] : [flags.url, '--url', 2];
  if (!text) return null;
  readAddress(text, source, 'admin key goes in --admin-key');
  return { base: text.replace(/\/+$/, ''), source, rank };
}

/**
 * Refuses an address together with a directory or database that is not that gateway's and has at least the same rank.
 */
function refuseRivals({ config, url, data, database }: Named, here: GatewayFile | null): void {
  const { base, source, rank } = url!;
  const refuse = (rival: string, where: string): never => {
    throw new CliError(`${source} names the gateway at ${base}, and ${rival} names ${where}.\nLeave one of them out.`);
  };
  const same = here?.base_url === base;
  if (database.rank >= rank && !(same && here.database === database.name))
    refuse(database.source, `the database ${database.name}`);
  if (same || data.rank < rank) return;
  if (here) refuse(data.source, `the data directory ${here.data_dir}, which the gateway at ${here.base_url} runs on`);
  if (hasDatabase(config.dataDir))
    refuse(data.source, `the data directory ${realPath(config.dataDir)}, which has a database of its own`);
}

/**
 * Refuses an address for a command that asks no gateway, unless a directory or database is named with a higher rank.
 */
function refuseElsewhere({ url, data, database }: Named, here: GatewayFile | null): void {
  if (url === null || here?.base_url === url.base || Math.max(data.rank, database.rank) > url.rank) return;
  throw new CliError(
    `${url.source} names the gateway at ${url.base}. This command asks no gateway: it reads the database itself.\n` +
      `Run it where that database is: leave ${url.source} out, and name the data directory (--data) or the database (DATABASE_URL).`,
  );
}

/** Whether the target is the gateway that runs on the data directory. Throws CliError if this is unclear. */
function uses(here: GatewayFile, { config, file, data, database }: Named, local: boolean): boolean {
  if (config.databaseUrl !== null && here.database !== database.name) return false;
  // A file that names no directory means the default directory, but another gateway may use that.
  if (file === null || data.rank > 0 || here.config === realPath(file)) return true;
  throw new CliError(
    `The gateway that runs on the data directory ${here.data_dir} (${here.base_url}) was started with ${here.config ?? 'no configuration file'}, not with ${file}.\n` +
      `Name the data directory that you mean (--data, or server.data_dir in ${file})${local ? '' : ', or the address of its gateway (--url)'}.`,
  );
}

/**
 * Refuses a gateway on another machine. The file that names it may have come with the folder of a project, so it must
 * not decide who gets the admin key of the environment. A command that reads the files itself is refused too, because
 * two machines must not use one embedded database.
 */
function refuseAway({ base_url: base, data_dir: dataDir }: GatewayFile, local: boolean): void {
  if (isOnThisMachine(base)) return;
  throw new CliError(
    `gateway.json in ${dataDir} names a gateway on another machine: ${printable(base)}\n` +
      (local
        ? `If that gateway uses this directory, run this command there. If none does, remove gateway.json.`
        : `If you mean that one, name it yourself: --url <address>, with its key in TOLLGATE_ADMIN_KEY.`),
  );
}

const hasDatabase = (dataDir: string): boolean => existsSync(join(dataDir, 'tollgate.db'));

function refuseUnusable(
  dataDir: string,
  { create, local }: { readonly create: boolean; readonly local: boolean },
): void {
  refuseUnreadable(dataDir);
  // If the directory has an identity but no database, the error comes later, with better advice, when the database is
  // opened.
  if (create || hasDatabase(dataDir) || existsSync(join(dataDir, 'identity.json'))) return;
  throw new CliError(
    `No gateway has run with the data directory ${dataDir} yet.\n` +
      (local
        ? 'Name another directory (--data), or the database (DATABASE_URL).'
        : `Start one (${START}), name another directory (--data), or a running gateway (--url http://… with TOLLGATE_ADMIN_KEY).`),
  );
}

/** Long enough for a gateway on a busy machine. If nothing listens at its address, that is known at once. */
const ANSWER_MS = 10_000;

/** Whether the gateway answers. A live process may not answer yet, or may have stopped answering. */
async function isThere(base: string): Promise<boolean> {
  try {
    const response = await fetch(`${base}/health/live`, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'error' });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}
