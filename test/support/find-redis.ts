import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** A Redis server program and what its process needs in its environment. */
export interface RedisProgram {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  /** For example `Redis server v=7.0.15 …`. */
  readonly version: string;
}

const CACHE = resolve(import.meta.dirname, '../../.cache');
const NAMES = ['redis-server', 'valkey-server'];

/**
 * Finds Redis: TOLLGATE_TEST_REDIS_BIN (file or directory), `redis-server` or `valkey-server` on PATH, `.cache/redis`.
 * On Debian and its kin it is downloaded there when missing: nothing is installed on the system. `progress` hears about the download.
 */
export function findRedis(progress: (line: string) => void = () => {}): RedisProgram {
  const chosen = process.env['TOLLGATE_TEST_REDIS_BIN'];
  if (chosen !== undefined) {
    const directory = statSync(chosen, { throwIfNoEntry: false })?.isDirectory() === true;
    const found = directory ? inDirectories([chosen]) : runnable(chosen, process.env);
    if (found !== null) return found;
    throw new Error(`TOLLGATE_TEST_REDIS_BIN is ${chosen}, but no working redis-server or valkey-server is there.`);
  }
  const installed = inDirectories((process.env['PATH'] ?? '').split(delimiter).filter((directory) => directory !== ''));
  if (installed !== null) return installed;
  const cached = inCache();
  if (cached !== null) return cached;
  if (!existsSync('/usr/bin/apt-get') || !existsSync('/usr/bin/dpkg-deb')) {
    throw new Error(
      'No Redis to test with. Install it (macOS: brew install redis; Fedora: dnf install valkey; Alpine: apk add redis) or set TOLLGATE_TEST_REDIS_BIN to redis-server or valkey-server.',
    );
  }
  progress('downloading Redis into .cache/redis (once)');
  download();
  const downloaded = inCache();
  if (downloaded !== null) return downloaded;
  throw new Error('The redis-tools package was downloaded, but its server does not run here. Install redis-server, or set TOLLGATE_TEST_REDIS_BIN.');
}

function inDirectories(directories: readonly string[]): RedisProgram | null {
  for (const directory of directories) {
    for (const name of NAMES) {
      const found = runnable(join(directory, name), process.env);
      if (found !== null) return found;
    }
  }
  return null;
}

function inCache(): RedisProgram | null {
  const root = join(CACHE, 'redis');
  if (!existsSync(root)) return null;
  // Debian's library directories carry the machine's name: usr/lib/x86_64-linux-gnu.
  const libraries = ['lib', 'usr/lib'].map((name) => join(root, name)).filter((directory) => existsSync(directory));
  const paths = libraries.flatMap((directory) => [directory, ...readdirSync(directory).map((name) => join(directory, name))]);
  return runnable(join(root, 'usr/bin/redis-server'), { ...process.env, LD_LIBRARY_PATH: paths.join(':') });
}

function runnable(file: string, env: NodeJS.ProcessEnv): RedisProgram | null {
  if (!existsSync(file)) return null;
  const result = spawnSync(file, ['--version'], { env, encoding: 'utf8' });
  return result.status === 0 ? { file, env, version: result.stdout.trim() } : null;
}

/** Fetches Debian's packages and unpacks them beside the checkout's other caches. Several may do it at once: the first to finish wins. */
function download(): void {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'redis-download-'));
  try {
    const packages = join(work, 'packages');
    mkdirSync(packages);
    fetchPackages(work, packages);
    const root = join(work, 'root');
    for (const name of readdirSync(packages)) {
      if (name.endsWith('.deb')) execFileSync('dpkg-deb', ['-x', join(packages, name), root]);
    }
    // The server is in redis-tools under this name, and looks at the name it is called by.
    const server = join(root, 'usr/bin/redis-server');
    if (!existsSync(server)) symlinkSync('redis-check-rdb', server);
    try {
      renameSync(root, join(CACHE, 'redis'));
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function fetchPackages(work: string, target: string): void {
  try {
    fetchWith(['-o', 'APT::Sandbox::User=root'], target);
  } catch {
    // The system's package lists are empty, old or not ours to read: use lists of our own.
    const lists = join(work, 'lists');
    const cache = join(work, 'cache');
    mkdirSync(join(lists, 'partial'), { recursive: true });
    mkdirSync(join(cache, 'archives/partial'), { recursive: true });
    const options = ['-o', 'APT::Sandbox::User=root', '-o', `Dir::State::lists=${lists}`, '-o', `Dir::Cache=${cache}`];
    apt([...options, 'update'], target);
    fetchWith(options, target);
  }
}

/** redis-tools, and what it needs that this system does not have. */
function fetchWith(options: readonly string[], target: string): void {
  const plan = apt([...options, '-s', 'install', '--no-install-recommends', 'redis-tools'], target);
  const missing = [...plan.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? '');
  apt([...options, 'download', ...new Set(['redis-tools', ...missing])], target);
}

function apt(args: readonly string[], cwd: string): string {
  const result = spawnSync('apt-get', args, { cwd, encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' }, timeout: 180_000 });
  if (result.status !== 0) throw new Error(`apt-get ${args.join(' ')} failed: ${result.stderr.trim().slice(-2000)}`);
  return result.stdout;
}
