import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

export const CHECKOUT = resolve(import.meta.dirname, '../..');

/**
 * The files that modules of a staged package name by their own address, relative to the package:
 * `new URL('./worker.js', new URL('../../store/thread.js', …).href)`. `files` are those of its code.
 */
export const namedFiles = (stage: string, files: readonly string[]): readonly string[] =>
  files.flatMap((file) => {
    const code = readFileSync(join(stage, file), 'utf8');
    const own = '\\(?new URL\\("(\\.[^"\\n]+)", import\\.meta\\.url\\)\\.href';
    const found = [
      ...[...code.matchAll(new RegExp(`"(\\.[^"\\n]+)",\\s*${own}`, 'g'))].map(([, name, at]) => [at!, name!] as const),
      ...[...code.matchAll(new RegExp(`${own},\\s*"(\\.[^"\\n]+)"`, 'g'))].map(([, at, name]) => [at!, name!] as const),
    ];
    return found.map(([at, name]) => join(dirname(join(dirname(file), at)), name));
  });

/** Puts an installed package beside the files of `folder`, as `npm install --prefix` would. */
export function linkPackage(name: string, folder: string): void {
  const link = join(folder, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(realpathSync(join(CHECKOUT, 'node_modules', name)), link);
}

/** Runs Node in the folder, with a process that has no working folder and threads whose priority cannot be set. */
export function runBroken(folder: string, args: readonly string[]): SpawnSyncReturns<string> {
  const broken = join(folder, 'break.mjs');
  writeFileSync(
    broken,
    `import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) process.cwd = () => { throw new Error('no folder'); };
os.setPriority = () => { throw new Error('no priority'); };
syncBuiltinESMExports();`,
  );
  return spawnSync(process.execPath, ['--import', broken, ...args], { cwd: folder, encoding: 'utf8' });
}

/** How a stack trace of a package in `stage` names the line of a source that contains the text. */
export function placeInSource(stage: string, path: string, text: string): string {
  const lines = readFileSync(join(CHECKOUT, path), 'utf8').split('\n');
  return `${stage}/${path}:${lines.findIndex((line) => line.includes(text)) + 1}:`;
}

/** The environment of a program that writes the addresses of the modules that it loaded to the file `to`. */
export const notingLoads = (to: string): NodeJS.ProcessEnv => ({
  NODE_OPTIONS: `--import=${new URL('../program/cli/note-loads.mjs', import.meta.url).href}`,
  LOADS: to,
});

/** The addresses of the modules of code that a program loaded, without Node's own. */
export const loadedModules = (noted: string): readonly string[] =>
  readFileSync(noted, 'utf8')
    .split('\n')
    .filter((url) => url.startsWith('file:') && !url.endsWith('.json'));
