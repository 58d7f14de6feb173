import { installTestPackages } from '../../scripts/test-packages.mjs';
import { confinesPackages } from '../../scripts/test-tiers.ts';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '#store';
import { findBuilt, ROOT } from '../../src/console/pages/web/page-files.ts';
import { MEMORY, prepareDataDirectories } from './data-directory.ts';
import { prepareFreshDatabases } from './fresh-database.ts';
import { allowNamedProgramsOnly } from './named-programs.ts';
import { startPostgres, type PostgresOptions } from './postgres.ts';
import { startRedis } from './redis.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** One PostgreSQL server for the whole run. Each test makes its own database there. */
    postgresUrl: string;
    /** One Redis server for the whole run. Each test uses its own keys. */
    redisUrl: string;
  }
}

/**
 * Starts the shared servers, if tests of this run use them, and passes their URLs to `inject`. Tests that break a
 * server start their own one.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // For runs without scripts/test.mjs, such as that of one file.
  installTestPackages(say);
  const directory = ownTemporaryDirectory();
  if (!confinesPackages())
    say(`Node ${process.version} cannot confine packages of the AI SDK: the tests that start one are left out`);
  // The deep run starts programs of other languages, with all that they need.
  if (process.env['TOLLGATE_DEEP'] !== '1') allowNamedProgramsOnly(directory);
  const [servers] = await Promise.all([
    // The everyday tests need none: `scripts/test-tiers.ts` says which those are.
    process.env['TOLLGATE_TESTS'] === 'everyday' ? null : startServers(project, directory),
    // The web pages are built before the first gateway starts. Otherwise a test that looks at a gateway's child
    // processes could see the build.
    findBuilt({ root: ROOT, signal: new AbortController().signal }),
  ]);
  const removeData = await prepareDataDirectories(ownPrefix(), (dataDir) => migrate({ dataDir }));
  return async () => {
    await servers?.stop();
    removeData();
    rmSync(directory, { recursive: true, force: true });
  };
}

async function startServers(project: TestProject, directory: string): Promise<{ stop(): Promise<unknown> }> {
  const [postgres, redis] = await Promise.all([
    timed('PostgreSQL', () => startPostgres({ ...UNDURABLE, keepAs: join(directory, 'postgres') })),
    timed('Redis', () => startRedis({ progress: say })),
  ]);
  // The programs were found once, and perhaps copied to a readable place. Tests with their own server reuse the result.
  process.env['TOLLGATE_TEST_POSTGRES_BIN'] ??= postgres.bin;
  await prepareFreshDatabases(postgres.url, (url) => migrate({ url, dataDir: '' }));
  project.provide('postgresUrl', postgres.url);
  project.provide('redisUrl', redis.url);
  return { stop: () => Promise.all([postgres.stop(), redis.stop()]) };
}

/** Tests that crash a server, or that test durability, start their own one. */
const UNDURABLE: PostgresOptions = {
  fsync: false,
  settings: { full_page_writes: 'off', synchronous_commit: 'off', autovacuum: 'off' },
};

async function migrate(where: Parameters<typeof openDatabase>[0]): Promise<void> {
  await (await openDatabase(where)).close();
}

const PREFIX = 'tollgate-tests-';
const ownPrefix = () => `${PREFIX}${process.pid}-`;

/**
 * Puts all temporary files of this run into one folder, which is deleted at the end. Also deletes the folders of
 * aborted runs.
 */
function ownTemporaryDirectory(): string {
  for (const folder of [tmpdir(), MEMORY].filter((each) => existsSync(each)))
    for (const name of readdirSync(folder)) {
      const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : NaN;
      if (pid > 0 && !isAlive(pid)) removeIfPossible(join(folder, name));
    }
  const directory = mkdtempSync(join(tmpdir(), ownPrefix()));
  process.env['TMPDIR'] = directory;
  return directory;
}

/** Files of another user can't be removed. */
function removeIfPossible(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch (error) {
    say(`${directory} is left of an aborted run and cannot be removed: ${(error as Error).message}`);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function timed<T extends { readonly version: string }>(name: string, start: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const server = await start();
  const version = /\d+(\.\d+)+/.exec(server.version)?.[0] ?? server.version;
  say(`${name} ${version} started in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  return server;
}

function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}
