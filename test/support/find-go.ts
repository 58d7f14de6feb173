import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { hasDebianPackages, unpackedAt, unpackPackage } from './debian-packages.ts';
import { foldersOfMachine } from './named-programs.ts';

/** The `go` command, and the environment that its process needs. */
export interface GoProgram {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  /** For example `go version go1.19.8 linux/amd64`. */
  readonly version: string;
}

/**
 * Finds Go: in TOLLGATE_TEST_GO_BIN (the file), on PATH, or in `.cache/go`. On Debian and its derivatives it is
 * downloaded to `.cache` if it is missing, but not installed. `progress` is called about the download. Returns a text
 * that says why if there is no Go.
 */
export function findGo(progress: (line: string) => void = () => {}): GoProgram | string {
  const chosen = process.env['TOLLGATE_TEST_GO_BIN'];
  if (chosen !== undefined)
    return runnable(chosen, process.env) ?? `TOLLGATE_TEST_GO_BIN is ${chosen}, which is no working go`;
  for (const directory of foldersOfMachine()) {
    const found = runnable(join(directory, 'go'), process.env);
    if (found !== null) return found;
  }
  const cached = inCache();
  if (cached !== null) return cached;
  const hint = 'install Go (Debian: apt-get install golang-go; macOS: brew install go), or set TOLLGATE_TEST_GO_BIN';
  if (!hasDebianPackages()) return hint;
  progress('downloading Go into .cache/go (once)');
  try {
    unpackPackage('go', 'golang-go');
  } catch (error) {
    return `${hint}: ${(error as Error).message}`;
  }
  return inCache() ?? hint;
}

function inCache(): GoProgram | null {
  // Debian has one folder per version: usr/lib/go-1.19.
  const libraries = join(unpackedAt('go'), 'usr/lib');
  const names = existsSync(libraries) ? readdirSync(libraries).filter((name) => /^go-\d/.test(name)) : [];
  for (const name of names) {
    const root = join(libraries, name);
    const found = runnable(join(root, 'bin/go'), { ...process.env, GOROOT: root });
    if (found !== null) return found;
  }
  return null;
}

function runnable(file: string, env: NodeJS.ProcessEnv): GoProgram | null {
  if (!existsSync(file)) return null;
  const result = spawnSync(file, ['version'], { env, encoding: 'utf8' });
  return result.status === 0 ? { file, env, version: result.stdout.trim() } : null;
}
