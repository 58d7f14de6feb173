import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { anyProvider } from './any-provider.ts';
import { atThisLoad } from './at-this-load.ts';
import { emptyDataDirectory, fillDataDirectory } from './data-directory.ts';
import { findFreePort } from './free-port.ts';
import { createKeeper } from './server-process.ts';
import type { Keeper, ServerProcess } from './server-process.ts';

export interface GatewayOptions {
  /**
   * `serve` (default) is production; `start` is the development gateway with the demo provider, play money and a key.
   */
  readonly command?: 'serve' | 'start';
  /** Additional arguments of the command. */
  readonly args?: readonly string[];
  /** Text of the TOML file. */
  readonly toml?: string;
  /** Environment variables in addition to PATH, HOME and NODE_OPTIONS. No others of this process are passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  /** A data directory that is kept. By default a temporary one is used, which `stop` removes. */
  readonly dataDir?: string;
  /** Default: any free port that stays its own while it is restarted. */
  readonly port?: number;
  /** Timeout for the start. Default 30 s, longer on a busy machine. */
  readonly timeoutMs?: number;
}

/** A gateway in its own process. The process ends with this one at the latest. */
export interface Gateway {
  /** `http://127.0.0.1:<port>`. */
  readonly baseUrl: string;
  readonly adminKey: string;
  /** Key of the development account; null for `serve`. */
  readonly apiKey: string | null;
  readonly dataDir: string;
  readonly pid: number;
  /** Milliseconds from its start until `/health/ready` answered that it is ready. */
  readonly readyMs: number;
  /** Sends one request to the admin API. `path` is below `/admin/v1`. Rejects on any status except 2xx. */
  admin(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Record<string, unknown>>;
  /** Creates an account with this much USD (a number or a decimal string), and a key for it. */
  openAccount(name: string, usd: number | string): Promise<{ readonly account: string; readonly key: string }>;
  /** Sends SIGKILL, which simulates a crash. The data stays until `stop`. */
  kill9(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit code. */
  term(): Promise<number | null>;
  /** Starts it again after `kill9` or `term`, on the same data directory and port. */
  restart(): Promise<void>;
  /** All output on stdout and stderr since the last start. */
  logs(): string;
  stop(): Promise<void>;
}

/**
 * The program as arguments of Node. There are no symbolic links in its path. Without these options Node would look for
 * some, which takes a fifth of the start time.
 */
export const PROGRAM = [
  '--preserve-symlinks',
  '--preserve-symlinks-main',
  resolve(import.meta.dirname, '../../bin/tollgate.mjs'),
];

/**
 * Starts a gateway and waits until `/health/ready` says that it is ready. Rejects with its output if it exits before
 * that.
 */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const home = emptyDataDirectory();
  const dataDir = options.dataDir ?? join(home, 'data');
  if (options.databaseUrl === undefined) fillDataDirectory(dataDir);
  const configFile = join(home, 'tollgate.toml');
  writeFileSync(configFile, options.toml ?? '');
  const keeper = createKeeper([home]);
  const port = options.port ?? (await findFreePort());
  let running: Running;

  const start = async (): Promise<void> => {
    const env = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      HOME: home,
      // For `scripts/shaken.mjs`.
      ...(process.env['NODE_OPTIONS'] === undefined ? {} : { NODE_OPTIONS: process.env['NODE_OPTIONS'] }),
      ...(options.databaseUrl === undefined ? {} : { DATABASE_URL: options.databaseUrl }),
      ...(options.redisUrl === undefined ? {} : { REDIS_URL: options.redisUrl }),
      ...anyProvider(options.toml),
      ...options.env,
    };
    const args = [
      ...PROGRAM,
      options.command ?? 'serve',
      '--config',
      configFile,
      '--data',
      dataDir,
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
    ];
    args.push(...(options.args ?? []));
    running = await startAndWait(keeper, { file: process.execPath, args, cwd: home, env }, dataDir, options);
  };
  const end = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    running.server.signal(signal);
    await running.server.exited;
  };
  try {
    await start();
  } catch (error) {
    await keeper.close();
    throw error;
  }

  return {
    get baseUrl() {
      return running.baseUrl;
    },
    get adminKey() {
      return running.adminKey;
    },
    get apiKey() {
      return running.apiKey;
    },
    get pid() {
      return running.server.pid;
    },
    get readyMs() {
      return running.readyMs;
    },
    dataDir,
    ...operatorOf(() => running),
    kill9: () => end('SIGKILL'),
    async term() {
      await end('SIGTERM');
      return running.server.exitCode;
    },
    restart: start,
    logs: () => running.server.output(),
    async stop() {
      if (running.server.exitCode === null && running.server.signalCode === null) await end('SIGTERM');
      await keeper.close();
    },
  };
}

/** The operator's functions, for the gateway that runs now. */
export function operatorOf(
  gateway: () => { readonly baseUrl: string; readonly adminKey: string },
): Pick<Gateway, 'admin' | 'openAccount'> {
  const admin: Gateway['admin'] = async (method, path, body) => {
    const { baseUrl, adminKey } = gateway();
    const response = await fetch(`${baseUrl}/admin/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${adminKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
  };
  return {
    admin,
    async openAccount(name, usd) {
      const { data } = (await admin('POST', '/accounts', { name })) as { data: { id: string } };
      const path = `/accounts/${encodeURIComponent(data.id)}`;
      if (Number(usd) > 0) await admin('POST', `${path}/credit`, { amount_usd: usd, reference: `opening-${data.id}` });
      const { key } = (await admin('POST', `${path}/keys`, {})) as { key: string };
      return { account: data.id, key };
    },
  };
}

interface Running {
  readonly server: ServerProcess;
  readonly baseUrl: string;
  readonly adminKey: string;
  readonly apiKey: string | null;
  readonly readyMs: number;
}

async function startAndWait(
  keeper: Keeper,
  command: Parameters<Keeper['start']>[0],
  dataDir: string,
  options: GatewayOptions,
): Promise<Running> {
  const development = options.command === 'start';
  const timeoutMs = options.timeoutMs ?? atThisLoad(30_000);
  const begun = performance.now();
  const server = keeper.start(command);
  while (performance.now() - begun < timeoutMs) {
    if (server.exitCode !== null || server.signalCode !== null) {
      await server.exited;
      throw new Error(
        `the gateway ended (${server.exitCode ?? server.signalCode}) before it was ready:\n${server.output()}`,
      );
    }
    const file = readJson(join(dataDir, 'gateway.json'));
    // The file may be from an earlier process.
    if (file !== null && file['pid'] === server.pid && (await isReady(String(file['base_url'])))) {
      const readyMs = performance.now() - begun;
      // The development gateway writes its key a moment later.
      const dev = development ? readJson(join(dataDir, 'dev.json')) : null;
      const keyIsThere = !development || dev?.['base_url'] === file['base_url'];
      const apiKey = dev === null ? null : String(dev['api_key']);
      if (keyIsThere)
        return { server, baseUrl: String(file['base_url']), adminKey: String(file['admin_key']), apiKey, readyMs };
    }
    await pause(10);
  }
  server.signal('SIGKILL');
  await server.exited;
  throw new Error(`the gateway was not ready after ${timeoutMs} ms:\n${server.output()}`);
}

async function isReady(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/health/ready`)).status === 200;
  } catch {
    return false;
  }
}

function readJson(path: string): Record<string, unknown> | null {
  // The file is renamed into place, so if it exists it is complete.
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) : null;
}
