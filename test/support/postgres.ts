import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPostgres } from './find-postgres.ts';
import type { PostgresPrograms } from './find-postgres.ts';
import { killTree, signalTree } from './process-tree.ts';
import { findFreePort } from './free-port.ts';
import { createKeeper } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

export interface PostgresOptions {
  /** Default true: what is committed is on the disk. Off only where nothing is said about durability. */
  readonly fsync?: boolean;
  /**
   * A directory that does not exist yet, for a copy of the data as they are before the first start. The servers that
   * this process and its children start later begin with it: to make them anew takes most of a second of a processor.
   */
  readonly keepAs?: string;
  /** More settings of postgresql.conf, for example `{ max_connections: '20' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A PostgreSQL of one's own with an empty data directory. It ends with this process at the latest. */
export interface Postgres {
  /** `postgres://` URL of the superuser's database over TCP. */
  readonly url: string;
  readonly port: number;
  /** Directory of the Unix socket, for `host=` in connection settings. */
  readonly socketDir: string;
  readonly version: string;
  /** Directory of its programs, in a form that this user can run: good for TOLLGATE_TEST_POSTGRES_BIN. */
  readonly bin: string;
  /**
   * Stops it and starts it again on the same port. `immediate` is PostgreSQL's own crash: no checkpoint, clients
   * cut off. Also after `kill9`.
   */
  restart(mode?: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL to all its processes. */
  kill9(): Promise<void>;
  /** SIGSTOP to all its processes: connections stay open and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
  logs(): string;
}

/** Names that directory, to the processes of a run. */
const KEPT = 'TOLLGATE_TEST_POSTGRES_DATA';
const READY = 'database system is ready to accept connections';
const PORT_ATTEMPTS = 5;

/** Makes a data directory and starts a server in it; takes about a second. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const programs = findPostgres();
  const home = mkdtempSync(join(process.getuid?.() === 0 ? '/tmp' : tmpdir(), 'tollgate-pg-'));
  const keeper = createKeeper(programs.copy === null ? [home] : [home, programs.copy]);
  const dataDir = join(home, 'data');
  const socketDir = join(home, 'socket');
  const kept = process.env[KEPT];
  const password = kept === undefined ? randomBytes(12).toString('hex') : readFileSync(passwordOf(kept), 'utf8');
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
    await started.wrote(READY);
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
    if (kept === undefined) await initialise(programs, home, dataDir);
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

/** With their owner, who is not this user where this is root. */
function copyData(from: string, to: string): void {
  execFileSync('cp', ['-Rp', from, to]);
}

async function initialise(programs: PostgresPrograms, home: string, dataDir: string): Promise<void> {
  // Password over loopback instead of trust: other users of the machine must not become this server's superuser.
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
    // A socket's path may have 107 bytes; TCP is there in any case.
    unix_socket_directories: socketDir.length < 80 ? socketDir : '',
    max_connections: '300',
    shared_buffers: '64MB',
    max_wal_size: '1GB',
    fsync: options.fsync === false ? 'off' : 'on',
    // In the data directory, so that a killed server leaves nothing behind in /dev/shm.
    dynamic_shared_memory_type: 'mmap',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...options.settings,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`)
    .join('');
}
