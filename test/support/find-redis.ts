import { spawnSync } from 'node:child_process';
import { existsSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { hasDebianPackages, unpackedAt, unpackedEnvironment, unpackPackage } from './debian-packages.ts';
import { foldersOfMachine } from './named-programs.ts';

/** A Redis server program, and the environment that its process needs. */
export interface RedisProgram {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  /** For example `Redis server v=7.0.15 …`. */
  readonly version: string;
}

const NAMES = ['redis-server', 'valkey-server'];

/**
 * Finds Redis: in TOLLGATE_TEST_REDIS_BIN (file or folder), `redis-server` or `valkey-server` on PATH, or in
 * `.cache/redis`. On Debian and its derivatives it is downloaded to `.cache` if it is missing, but not installed.
 * `progress` is called about the download.
 */
export function findRedis(progress: (line: string) => void = () => {}): RedisProgram {
  const chosen = process.env['TOLLGATE_TEST_REDIS_BIN'];
  if (chosen !== undefined) {
    const directory = statSync(chosen, { throwIfNoEntry: false })?.isDirectory() === true;
    const found = directory ? inDirectories([chosen]) : runnable(chosen, process.env);
    if (found !== null) return found;
    throw new Error(`TOLLGATE_TEST_REDIS_BIN is ${chosen}, but no working redis-server or valkey-server is there.`);
  }
  const installed = inDirectories(foldersOfMachine());
  if (installed !== null) return installed;
  const cached = inCache();
  if (cached !== null) return cached;
  if (!hasDebianPackages()) {
    throw new Error(
      'No Redis to test with. Install it (macOS: brew install redis; Fedora: dnf install valkey; Alpine: apk add redis) or set TOLLGATE_TEST_REDIS_BIN to redis-server or valkey-server.',
    );
  }
  progress('downloading Redis into .cache/redis (once)');
  unpackPackage('redis', 'redis-tools', nameServer);
  const downloaded = inCache();
  if (downloaded !== null) return downloaded;
  throw new Error(
    'The redis-tools package was downloaded, but its server does not run here. Install redis-server, or set TOLLGATE_TEST_REDIS_BIN.',
  );
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
  return runnable(join(unpackedAt('redis'), 'usr/bin/redis-server'), unpackedEnvironment('redis'));
}

function runnable(file: string, env: NodeJS.ProcessEnv): RedisProgram | null {
  if (!existsSync(file)) return null;
  const result = spawnSync(file, ['--version'], { env, encoding: 'utf8' });
  return result.status === 0 ? { file, env, version: result.stdout.trim() } : null;
}

/** The package redis-tools contains the server under another name. The program decides by its own name what it is. */
function nameServer(root: string): void {
  const server = join(root, 'usr/bin/redis-server');
  if (!existsSync(server)) symlinkSync('redis-check-rdb', server);
}
