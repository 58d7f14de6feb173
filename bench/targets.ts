import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../test/support/free-port.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { announcedPort, startProgram, type Program } from './program.ts';
import { MODELS } from './upstream/replies.ts';

/** A running gateway, ready for calls. */
export interface Target {
  readonly port: number;
  /** The process whose CPU time and memory count. null for the upstream itself, which is called directly. */
  readonly pid: number | null;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The name that it gives to the tool of the bench, if another. */
  readonly tool?: string;
  /** The data directory of a tollgate. */
  readonly dataDir?: string;
  /** The target's own report on its event loop: the 99th percentile of the delay in milliseconds, or null. */
  loopDelayMs?(): Promise<number | null>;
  /** Opens an account without credit. Resolves with the headers for its calls. */
  openAccount?(): Promise<Readonly<Record<string, string>>>;
  stop(): Promise<void>;
}

export interface TargetKind {
  readonly name: string;
  readonly title: string;
  /** Says what is missing if this target can't run here. */
  missing?(): string | null;
  /**
   * `nodeArgs` are Node's arguments before the script, for targets that can be profiled. `main` is the script of a
   * gateway, by default this checkout's.
   */
  start(upstreamPort: number, nodeArgs?: readonly string[], main?: string): Promise<Target>;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const CHAT = '/v1/chat/completions';
const PORTKEY = here('node_modules/@portkey-ai/gateway/build/start-server.js');
const TOLLGATE = here('../bin/tollgate.mjs');

/** Starts a script of the benchmark that forwards to the upstream. */
export async function passthrough(
  script: string,
  upstreamPort: number,
  {
    path = CHAT,
    nodeArgs = [],
    args = [],
  }: {
    readonly path?: string;
    readonly nodeArgs?: readonly string[] | undefined;
    readonly args?: readonly string[];
  } = {},
): Promise<Target> {
  const program = startProgram([...nodeArgs, here(script), '--upstream', `http://127.0.0.1:${upstreamPort}`, ...args]);
  return { port: await announcedPort(program), pid: program.pid, path, headers: {}, stop: () => program.stop() };
}

async function answers(url: string): Promise<true | null> {
  try {
    await (await fetch(url)).arrayBuffer();
    return true;
  } catch {
    return null;
  }
}

async function portkey(upstreamPort: number): Promise<Target> {
  // Portkey cannot choose a free port by itself.
  const port = await findFreePort();
  const program = startProgram([PORTKEY, `--port=${port}`, '--headless'], { cwd: here('.') });
  await program.until(() => answers(`http://127.0.0.1:${port}/`), 'an answer');
  return {
    port,
    pid: program.pid,
    path: CHAT,
    headers: {
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${upstreamPort}/v1`,
      authorization: 'Bearer bench',
    },
    stop: () => program.stop(),
  };
}

interface TollgateOptions {
  readonly databaseUrl?: string;
  /**
   * The upstream is reached through a provider's proxy. It is a separate process, and its CPU time doesn't count as the
   * gateway's.
   */
  readonly tunnel?: boolean;
  readonly nodeArgs?: readonly string[] | undefined;
  /** The script of the gateway. By default this checkout's. */
  readonly main?: string | undefined;
  /** The path to call. Default: chat. */
  readonly path?: string;
  /** Default `warn`, which logs no calls. */
  readonly logLevel?: 'info' | 'warn';
  /** The value of `ledger.flush`. Default `each`. */
  readonly flush?: string;
  /** More arguments of `tollgate serve`. */
  readonly args?: readonly string[];
  /** Blocks of its services. By default one priced service for each model of the upstream. */
  readonly blocks?: string;
}

export const tollgateMissing = () => (existsSync(TOLLGATE) ? null : 'bin/tollgate.mjs is not there');

/** Starts a production gateway with priced services, an account with credit, and limits that are never reached. */
export async function tollgate(upstreamPort: number, options: TollgateOptions = {}): Promise<Target> {
  const {
    databaseUrl,
    tunnel = false,
    nodeArgs = [],
    main = TOLLGATE,
    path = `/api${CHAT}`,
    logLevel = 'warn',
    blocks = modelsText(upstreamPort),
    args = [],
    flush = 'each',
  } = options;
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
  const dataDir = join(folder, 'data');
  const config = join(folder, 'tollgate.toml');
  writeFileSync(
    config,
    configText(dataDir, databaseUrl ?? null, logLevel, flush) + (tunnel ? '[tunnel]\nproviders = "anyone"\n' : blocks),
  );
  let program: Program | null = null;
  let proxy: Program | null = null;
  const stop = async () => {
    await proxy?.stop();
    await program?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    program = startProgram([...nodeArgs, main, 'serve', '--config', config, ...args]);
    const found = await program.until(() => readDiscovery(join(dataDir, 'gateway.json')), 'gateway.json');
    const admin = adminOf(found);
    const id = await newAccount(admin, 'bench');
    await admin(`/admin/v1/accounts/${encodeURIComponent(id)}/credit`, { amount_usd: '1000000', reference: 'bench' });
    const key = await newKey(admin, id);
    if (tunnel) {
      const file = join(folder, 'provider.toml');
      const providerKey = await newKey(admin, await newAccount(admin, 'provider'));
      writeFileSync(file, `[router]\nurl = "${found.base_url}"\napi_key = "${providerKey}"\n${blocks}`);
      proxy = startProgram([main, 'provide', '--config', file]);
      const { output } = proxy;
      await proxy.until(
        () => Promise.resolve(output().includes('ready: calls can come') ? true : null),
        'a ready proxy',
      );
    }
    return {
      port: Number(new URL(found.base_url).port),
      pid: program.pid,
      dataDir,
      path,
      headers: { authorization: `Bearer ${key}` },
      openAccount: async () => ({ authorization: `Bearer ${await newKey(admin, await newAccount(admin, 'bench'))}` }),
      loopDelayMs: () => loopDelay(found),
      stop,
    };
  } catch (error) {
    const output = program?.output() ?? '';
    await stop();
    throw new Error(`tollgate did not start: ${String(error)}\n${output}`, { cause: error });
  }
}

type Admin = (path: string, body: object) => Promise<Record<string, unknown>>;

async function newAccount(admin: Admin, name: string): Promise<string> {
  const { id } = await admin('/admin/v1/accounts', { name });
  if (typeof id !== 'string') throw new Error('the admin API made no account');
  return id;
}

async function newKey(admin: Admin, account: string): Promise<string> {
  const { key } = await admin(`/admin/v1/accounts/${encodeURIComponent(account)}/keys`, { label: 'bench' });
  if (typeof key !== 'string') throw new Error('the admin API made no key');
  return key;
}

interface Discovery {
  readonly base_url: string;
  readonly admin_key: string;
}

function readDiscovery(path: string): Discovery | null {
  if (!existsSync(path)) return null;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Discovery;
  } catch {
    // The file is only half written.
    return null;
  }
}

function adminOf(gateway: Discovery): Admin {
  return async (path, body) => {
    const response = await fetch(new URL(path, gateway.base_url), {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.admin_key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
    const { data, ...rest } = (await response.json()) as { data: Record<string, unknown> };
    return { ...data, ...rest };
  };
}

async function loopDelay(gateway: Discovery): Promise<number | null> {
  const response = await fetch(new URL('/metrics', gateway.base_url), {
    headers: { authorization: `Bearer ${gateway.admin_key}` },
  });
  const found = /^\w*nodejs_eventloop_lag_p99_seconds(?:\{[^}]*\})? ([\d.e+-]+)$/m.exec(await response.text());
  return found ? Number(found[1]) * 1000 : null;
}

/** TOML blocks with one service for each of the upstream's models. */
export function modelsText(upstreamPort: number): string {
  return Object.values(MODELS)
    .map(
      (model) => `
[[models]]
name = "${model}"
display_name = "Bench ${model}"
provider_name = "bench"
context_length = 32768
[models.pricing]
prompt = 0.15
completion = 0.60
[models.params]
model = "${model}"
api_base = "http://127.0.0.1:${upstreamPort}/v1"
api_key = "bench"
`,
    )
    .join('');
}

function configText(dataDir: string, databaseUrl: string | null, logLevel: string, flush: string): string {
  return `[server]
host = "127.0.0.1"
port = 0
data_dir = ${JSON.stringify(dataDir)}
log_level = "${logLevel}"
${databaseUrl ? `[database]\nurl = ${JSON.stringify(databaseUrl)}\n` : ''}
[limits]
requests_per_minute = 10000000
burst = 10000000
tokens_per_minute = 1000000000000
[upstream]
connections_max = 8192
${flush === 'each' ? '' : `[ledger]\nflush = "${flush}"\n`}`;
}

/** A gateway with a PostgreSQL of its own. */
async function onPostgres(port: number, options: TollgateOptions): Promise<Target> {
  const postgres = await startPostgres();
  try {
    const target = await tollgate(port, { ...options, databaseUrl: postgres.url });
    return {
      ...target,
      async stop() {
        await target.stop();
        await postgres.stop();
      },
    };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** All targets, in the order of the table. `direct` is the upstream without a gateway. */
export const TARGETS: readonly TargetKind[] = [
  {
    name: 'direct',
    title: 'upstream, called directly',
    start: (upstreamPort) =>
      Promise.resolve({ port: upstreamPort, pid: null, path: CHAT, headers: {}, stop: () => Promise.resolve() }),
  },
  {
    name: 'bare',
    title: 'node:http + undici, bytes through',
    start: (port, nodeArgs) => passthrough('targets/bare.ts', port, { nodeArgs }),
  },
  {
    name: 'fastify',
    title: 'Fastify + undici, bytes through (reference)',
    start: (port, nodeArgs) => passthrough('targets/fastify.ts', port, { nodeArgs }),
  },
  {
    name: 'tollgate',
    title: 'tollgate, billing on, embedded database',
    missing: tollgateMissing,
    start: (port, nodeArgs, main) => tollgate(port, { nodeArgs, main }),
  },
  {
    name: 'tollgate-tunnel',
    title: "tollgate, billing on, embedded, through a provider's tunnel",
    missing: tollgateMissing,
    start: (port, nodeArgs, main) => tollgate(port, { tunnel: true, nodeArgs, main }),
  },
  {
    name: 'tollgate-postgres',
    title: 'tollgate, billing on, PostgreSQL',
    missing: tollgateMissing,
    start: (port, nodeArgs) => onPostgres(port, { nodeArgs }),
  },
  {
    name: 'portkey',
    title: 'Portkey gateway 1.15.2, no billing',
    missing: () => (existsSync(PORTKEY) ? null : 'npm ci --prefix bench did not bring it'),
    start: portkey,
  },
];

/** Not among TARGETS, because `npm run bench` has one target of each database. */
export const LATE: readonly TargetKind[] = [
  {
    name: 'tollgate-late',
    title: 'tollgate, billing on, embedded database, charges up to 50 ms late',
    missing: tollgateMissing,
    start: (port, nodeArgs) => tollgate(port, { nodeArgs, flush: '50ms' }),
  },
  {
    name: 'tollgate-postgres-late',
    title: 'tollgate, billing on, PostgreSQL, charges up to 50 ms late',
    missing: tollgateMissing,
    start: (port, nodeArgs) => onPostgres(port, { nodeArgs, flush: '50ms' }),
  },
];

/** Not one of TARGETS, because `npm run bench` reads the CPU of one process. */
export const WORKERS: TargetKind = {
  name: 'tollgate-workers',
  title: 'tollgate, billing on, PostgreSQL, two workers',
  missing: tollgateMissing,
  start: (port, nodeArgs) => onPostgres(port, { nodeArgs, args: ['--workers', '2'] }),
};
