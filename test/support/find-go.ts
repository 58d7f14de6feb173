import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { hasDebianPackages, unpackedAt, unpackPackage } from './debian-packages.ts';

/** The `go` command and what its process needs in its environment. */
export interface GoProgram {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  /** For example `go version go1.19.8 linux/amd64`. */
  readonly version: string;
}

/**
 * Finds Go: TOLLGATE_TEST_GO_BIN (the file), `go` on PATH, `.cache/go`. On Debian and its kin it is downloaded
 * there when missing: nothing is installed on the system. `progress` hears about the download. A text says why
 * there is none.
 */
export function findGo(progress: (line: string) => void = () => {}): GoProgram | string {
  const chosen = process.env['TOLLGATE_TEST_GO_BIN'];
  if (chosen !== undefined)
    return runnable(chosen, process.env) ?? `TOLLGATE_TEST_GO_BIN is ${chosen}, which is no working go`;
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    const found = directory === '' ? null : runnable(join(directory, 'go'), process.env);
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
  // Debian has one directory for each version: usr/lib/go-1.19.
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
