import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import type { Config } from '#gateway';
import { localAccount } from '../gateway/account/account-id.ts';
import { loadConfig } from '../gateway/config-file.ts';
import { loadAdminKey } from './admin-key.ts';
import { CliError } from './cli-error.ts';
import { findGateway } from './discovery.ts';
import { OWN_NAME } from './own-name.ts';

/** The administration of a gateway: the running one, or its database where none runs. Both speak the same admin API. */
export interface AdminClient {
  /** `path` is below `/admin/v1`. Resolves with the answer's body, which has `data`; rejects with CliError. */
  request(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Answer>;
  close(): Promise<void>;
}

/** An answer of the admin API. `key` is there only where a key was made. */
export interface Answer {
  readonly data: unknown;
  readonly key?: string;
}

export interface AdminFlags {
  readonly url?: string;
  readonly adminKey?: string;
  readonly data?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** Options of every command that administers a gateway. */
export function withAdminOptions(command: Command): Command {
  const gateway = (flags: string, description: string) => command.addOption(new Option(flags, description).helpGroup('Which gateway:'));
  command.option('--json', 'print JSON instead of a table');
  gateway('--url <address>', 'address of a running gateway (TOLLGATE_URL); by default the one that runs on the data directory');
  gateway('--admin-key <key>', 'its admin key; better in TOLLGATE_ADMIN_KEY, which process lists do not show');
  gateway('--data <directory>', 'data directory (TOLLGATE_DATA)');
  gateway('-c, --config <file>', 'TOML file that names the data directory or the database');
  return command;
}

const REQUEST_MS = 10 * 60_000;

/** Where a command finds its gateway. */
export interface Found {
  /** null: none runs, so the database is to be opened. */
  readonly running: AdminClient | null;
  readonly config: Config;
}

/** Finds the gateway: `--url`, else the one that runs on the data directory. Throws CliError when neither it nor a database is there. */
export async function findAdmin(flags: AdminFlags, { create = false }: { readonly create?: boolean } = {}): Promise<Found> {
  const { env } = process;
  const config = loadConfig({ file: flags.config ?? null, env, mode: 'production', overrides: { 'server.data_dir': flags.data } });
  const keyGiven = flags.adminKey ?? config.adminKey;
  const url = flags.url ?? env['TOLLGATE_URL'];
  const file = findGateway(config.dataDir);

  if (url) {
    if (!/^https?:/.test(url) || !URL.canParse(url)) throw new CliError(`--url is not an address: ${url}\nGive it as http://127.0.0.1:8402`);
    const base = url.replace(/\/+$/, '');
    const key = keyGiven ?? (file?.base_url === base ? file.admin_key : null);
    if (!key) throw new CliError(`The admin key of ${base} is not known.\nSet TOLLGATE_ADMIN_KEY, or give --admin-key.`);
    return { running: remote(base, key), config };
  }
  // The process id of a gateway that was killed may belong to another program by now: ask the address as well.
  if (file && (await isThere(file.base_url))) return { running: remote(file.base_url, keyGiven ?? file.admin_key), config };

  if (config.databaseUrl === null) refuseUnreadable(config.dataDir);
  if (config.databaseUrl === null && !create && !existsSync(join(config.dataDir, 'tollgate.db'))) {
    throw new CliError(
      `No gateway has run with the data directory ${config.dataDir} yet.\n` +
        `Start one (npm start), name another directory (--data), or a running gateway (--url http://… with TOLLGATE_ADMIN_KEY).`,
    );
  }
  return { running: null, config };
}

/** Another user's data directory must not be taken for an empty one. */
function refuseUnreadable(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
  } catch (error) {
    throw new CliError(
      `The data directory ${dataDir} belongs to another user.\nRun this as the user that runs the gateway, or name another directory (--data).`,
      { cause: error },
    );
  }
}

/** The running gateway, else one that is made for this command on the database and takes no calls. `create`: a missing database is made. */
export async function openAdmin(flags: AdminFlags, options: { readonly create?: boolean } = {}): Promise<AdminClient> {
  const { running, config } = await findAdmin(flags, options);
  if (running) return running;
  const adminKey = flags.adminKey ?? config.adminKey ?? loadAdminKey(config.dataDir);
  // Loaded here: a running gateway is asked without any of it.
  const { createApp } = await import('../app.ts');
  // Without their treasuries: a command that administers accounts pays nothing out.
  const chains = config.chains.map((chain) => ({ ...chain, payments: null }));
  const app = await createApp({ ...config, chains, adminKey, logLevel: 'silent', otlpEndpoint: null, redisUrl: null });
  return {
    async request(method, path, body) {
      const response = await app.server.inject({
        method,
        url: `/admin/v1${path}`,
        headers: { authorization: `Bearer ${adminKey}` },
        ...(body === undefined ? {} : { payload: body }),
      });
      return readAnswer(response.statusCode, response.body, 'The database');
    },
    close: () => app.close(),
  };
}

function remote(base: string, key: string): AdminClient {
  return {
    async request(method, path, body) {
      let response: Response;
      try {
        response = await fetch(`${base}/admin/v1${path}`, {
          method,
          redirect: 'error',
          headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
          signal: AbortSignal.timeout(REQUEST_MS),
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      } catch (error) {
        throw new CliError(
          `${base} does not answer.\nIs the gateway running there? Start it with npm start or tollgate serve, or give another --url.`,
          { cause: error },
        );
      }
      return readAnswer(response.status, await response.text(), base);
    },
    close: async () => {},
  };
}

function readAnswer(status: number, text: string, where: string): Answer {
  let body: Partial<Answer> & { error?: { message?: string } };
  try {
    body = (JSON.parse(text) ?? {}) as typeof body;
  } catch {
    throw new CliError(`${where} answered with something that is not JSON (status ${status}). Is it a tollgate?`);
  }
  if (status < 400 && 'data' in body) return { ...body, data: body.data };
  const message = body.error?.message ?? `status ${status}`;
  if (status === 404) throw new CliError(`${message}.\nSee what there is: ${OWN_NAME} account list`);
  throw new CliError(
    status === 401 ? `${where}: ${message}.\nGive the right one in TOLLGATE_ADMIN_KEY; without it the key in the data directory is used.` : message,
  );
}

async function isThere(base: string): Promise<boolean> {
  try {
    const response = await fetch(`${base}/health/live`, { signal: AbortSignal.timeout(2000), redirect: 'error' });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** Runs a command against the gateway that the flags name, and prints what it returns: as JSON, or as `show` says it. */
export async function administer<T>(
  flags: AdminFlags,
  options: { readonly create?: boolean; readonly run: (admin: AdminClient) => Promise<T>; readonly show: (result: T) => string },
): Promise<void> {
  const admin = await openAdmin(flags, { create: options.create ?? false });
  try {
    const result = await options.run(admin);
    process.stdout.write(`${flags.json ? JSON.stringify(result, null, 2) : options.show(result)}\n`);
  } finally {
    await admin.close();
  }
}

/** All entries of a paged list. */
export async function listAll<T>(admin: AdminClient, path: string): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const page = (await admin.request('GET', `${path}?limit=${PAGE}&offset=${all.length}`)).data as readonly T[];
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
const PAGE = 100;

/** The path of an account that was named in full (`tollgate:local:acme`, a wallet) or by its short name (`acme`). */
export function accountPath(name: string): string {
  return `/accounts/${encodeURIComponent(name.includes(':') ? name : localAccount(name))}`;
}
