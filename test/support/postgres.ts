import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { findPostgres } from './find-postgres.ts';
import type { PostgresPrograms } from './find-postgres.ts';
import { killTree, signalTree } from './process-tree.ts';
import { findFreePort } from './free-port.ts';
import { createKeeper } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

export interface PostgresOptions {
  /** Default true: commits are on the disk. Set it to false only for tests that don't test durability. */
  readonly fsync?: boolean;
  /**
   * A folder that doesn't exist yet. It gets a copy of the data before the first start. Servers that this process and
   * its children start later begin with this copy, because initdb takes most of a second of CPU time.
   */
  readonly keepAs?: string;
  /** Additional settings of postgresql.conf, for example `{ max_connections: '20' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The server is a standby of this one: it begins with a copy of its data, and follows it until `promote`. */
  readonly standbyOf?: Postgres;
}

/** A separate PostgreSQL server with an empty data directory. It ends with this process at the latest. */
export interface Postgres {
  /** `postgres://` URL of the superuser's database over TCP. */
  readonly url: string;
  readonly port: number;
  /** Folder of the Unix socket, for `host=` in connection settings. */
  readonly socketDir: string;
  readonly version: string;
  /** Folder of its programs, which this user can run. It can be used as TOLLGATE_TEST_POSTGRES_BIN. */
  readonly bin: string;
  readonly dataDir: string;
  /** Makes a standby a primary. */
  promote(): Promise<void>;
  /**
   * Restarts the server on the same port, also after `kill9`. `immediate` is PostgreSQL's own crash: no checkpoint, and
   * clients are disconnected.
   */
  restart(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Sends SIGKILL to all its processes. */
  kill9(): Promise<void>;
  /** Sends SIGSTOP to all its processes: connections stay open but get no answers. */
  freeze(): void;
  thaw(): void;
  /** Stops the server and deletes its files. */
  stop(): Promise<void>;
  logs(): string;
}

/** The environment variable with the folder of `keepAs`. */
const KEPT = 'TOLLGATE_TEST_POSTGRES_DATA';
const READY = 'database system is ready to accept connections';
const STANDBY_READY = 'database system is ready to accept read-only connections';
const PORT_ATTEMPTS = 5;

/** Makes a data directory and starts a server with it. This takes about a second. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const programs = findPostgres();
  const home = mkdtempSync(join(process.getuid?.() === 0 ? '/tmp' : tmpdir(), 'tollgate-pg-'));
  const keeper = createKeeper(programs.copy === null ? [home] : [home, programs.copy]);
  const dataDir = join(home, 'data');
  const socketDir = join(home, 'socket');
  const kept = process.env[KEPT];
  const { standbyOf } = options;
  const password =
    standbyOf !== undefined
      ? new URL(standbyOf.url).password
      : kept === undefined
        ? randomBytes(12).toString('hex')
        : readFileSync(passwordOf(kept), 'utf8');
  let server: ServerProcess | null = null;
  let port = 0;

  const start = async (): Promise<void> => {
    const started = keeper.start({
      file: join(programs.bin, 'postgres'),
      args: ['-D', dataDir, '-p', String(port)],
      cwd: home,
      uid: programs.uid,
      gid: programs.gid,
    });
    server = started;
    await started.wrote(existsSync(join(dataDir, STANDBY_SIGNAL)) ? STANDBY_READY : READY);
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server === null || server.exitCode !== null || server.signalCode !== null) return;
    server.signal(signal);
    await server.exited;
  };

  try {
    mkdirSync(socketDir);
    writeFileSync(passwordOf(dataDir), password, { mode: 0o600 });
    if (programs.uid !== undefined && programs.gid !== undefined) {
      for (const path of [home, socketDir, passwordOf(dataDir)]) chownSync(path, programs.uid, programs.gid);
    }
    chmodSync(home, 0o700);
    if (standbyOf !== undefined) await copyPrimary(standbyOf, dataDir);
    else if (kept === undefined) await initialise(programs, home, dataDir);
    else copyData(kept, dataDir);
    if (options.keepAs !== undefined) {
      copyData(dataDir, options.keepAs);
      writeFileSync(passwordOf(options.keepAs), password, { mode: 0o600 });
      process.env[KEPT] = options.keepAs;
    }
    writeFileSync(join(dataDir, 'postgresql.auto.conf'), settingsText(options, socketDir), { flag: 'a' });
    for (let attempt = 1; ; attempt += 1) {
      port = await findFreePort();
      try {
        await start();
        break;
      } catch (error) {
        if (attempt === PORT_ATTEMPTS || !String(error).includes('Address already in use')) throw error;
      }
    }
  } catch (error) {
    await keeper.close();
    throw error;
  }

  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    port,
    socketDir,
    version: programs.version,
    bin: programs.bin,
    dataDir,
    async promote() {
      await query(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, ['SELECT pg_promote(true, 60)']);
    },
    async restart(mode = 'fast') {
      await end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
      await start();
    },
    async kill9() {
      if (server === null) return;
      killTree(server.pid);
      await server.exited;
    },
    freeze() {
      if (server !== null) signalTree(server.pid, 'SIGSTOP');
    },
    thaw() {
      if (server !== null) signalTree(server.pid, 'SIGCONT');
    },
    async stop() {
      if (server !== null && server.exitCode === null && server.signalCode === null) signalTree(server.pid, 'SIGCONT');
      await end('SIGINT');
      await keeper.close();
    },
    logs: () => server?.output() ?? '',
  };
}

const passwordOf = (dataDir: string) => `${dataDir}.password`;

/** Keeps the owner of the files. If this user is root, the owner is another user. */
function copyData(from: string, to: string): void {
  execFileSync('cp', ['-Rp', from, to]);
}

const STANDBY_SIGNAL = 'standby.signal';

/** Runs statements on one connection. Resolves with the first value of the last one. */
async function query(url: string, statements: readonly string[]): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    let value: unknown;
    for (const text of statements)
      value = Object.values((await client.query<Record<string, unknown>>(text)).rows[0] ?? {})[0];
    return value;
  } finally {
    await client.end();
  }
}

/** A copy of the data of a running server, with which a standby can begin. */
async function copyPrimary({ url, port, dataDir: from }: Postgres, to: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', true)");
    copyData(from, to);
    const { rows } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)');
    // Files in the copied folder belong to the user of the server.
    const write = (name: string, text: string) => {
      const path = join(to, name);
      writeFileSync(path, text, { flag: 'a', mode: 0o600 });
      const { uid, gid } = statSync(join(to, 'PG_VERSION'));
      chownSync(path, uid, gid);
    };
    rmSync(join(to, 'postmaster.pid'), { force: true });
    rmSync(join(to, 'backup_label'), { force: true });
    write('backup_label', rows[0]!.labelfile);
    write(STANDBY_SIGNAL, '');
    const password = new URL(url).password;
    write(
      'postgresql.auto.conf',
      `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres password=${password} application_name=standby'\n`,
    );
  } finally {
    await client.end();
  }
}

async function initialise(programs: PostgresPrograms, home: string, dataDir: string): Promise<void> {
  // Passwords instead of `trust` on loopback. Otherwise other users of the machine could become superuser of this
  // server.
  const args = [
    '-D',
    dataDir,
    '-U',
    'postgres',
    '-A',
    'password',
    `--pwfile=${passwordOf(dataDir)}`,
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
    // The server hashes the password of each new connection as often as this says: 4,096 times by default, which took
    // a tenth of the servers' CPU time. Versions before 16 don't have the setting.
    ...(Number(/\d+/.exec(programs.version)?.[0]) >= 16 ? ['-c', 'scram_iterations=1'] : []),
  ];
  const child = spawn(join(programs.bin, 'initdb'), args, {
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(programs.uid === undefined ? {} : { uid: programs.uid }),
    ...(programs.gid === undefined ? {} : { gid: programs.gid }),
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0 || !existsSync(join(dataDir, 'PG_VERSION')))
    throw new Error(`initdb of ${programs.bin} failed (${code}):\n${output}`);
}

function settingsText(options: PostgresOptions, socketDir: string): string {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    // The path of a socket may have at most 107 bytes. If it is too long, only TCP is used.
    unix_socket_directories: socketDir.length < 80 ? socketDir : '',
    max_connections: '300',
    shared_buffers: '64MB',
    max_wal_size: '1GB',
    fsync: options.fsync === false ? 'off' : 'on',
    // In the data directory, so that a killed server leaves nothing in /dev/shm.
    dynamic_shared_memory_type: 'mmap',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...options.settings,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join('');
}
