import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Files of installed packages that no program reads: types, source maps, tests and guides. Licences are kept. */
const UNREAD = /\.(?:d\.[cm]?ts|ts|mts|cts|map|md|markdown|tsbuildinfo|flow)$/i;
export const LICENCE = /^(?:licen[cs]e|notice|copying)/i;
const UNREAD_FOLDERS: ReadonlySet<string> = new Set([
  'test',
  'tests',
  '__tests__',
  'docs',
  'example',
  'examples',
  '.github',
  '_types',
]);

/**
 * Packages that are needed only for types or builds. `typescript` is a peer dependency of Solana's packages, which use
 * only its types.
 */
const UNUSED = ['typescript', '@typescript', '@types'];

/** Deletes the files of `node_modules` that aren't read at run time. Returns the size of the rest in bytes. */
export function pruneModules(modules: string): number {
  for (const name of UNUSED) rmSync(join(modules, name), { recursive: true, force: true });
  rmSync(join(modules, '.package-lock.json'), { force: true });
  rmSync(join(modules, '.bin'), { recursive: true, force: true });
  return prune(modules);
}

function prune(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      // Only a package's top-level folders are deleted by name, because `dist/test` may be code.
      if (UNREAD_FOLDERS.has(entry.name) && TOP_OF_PACKAGE.test(folder)) rmSync(path, { recursive: true });
      else bytes += prune(path);
    } else if (UNREAD.test(entry.name) && !LICENCE.test(entry.name)) rmSync(path);
    else bytes += statSync(path).size;
  }
  return bytes;
}

const TOP_OF_PACKAGE = /node_modules\/(?:@[^/]+\/)?[^/@]+$/;
