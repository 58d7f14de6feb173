import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Files of installed packages that no program reads: types, maps of sources, tests and guides. Licences stay. */
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
 * Packages that are there for their types or for a build alone. `typescript` is a peer of Solana's packages, which
 * use its types only.
 */
const UNUSED = ['typescript', '@typescript', '@types'];

/** Takes from `node_modules` what nothing reads at run time. Returns the bytes that remain. */
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
      // Only a package's own top folders are judged by name: `dist/test` may be code.
      if (UNREAD_FOLDERS.has(entry.name) && TOP_OF_PACKAGE.test(folder)) rmSync(path, { recursive: true });
      else bytes += prune(path);
    } else if (UNREAD.test(entry.name) && !LICENCE.test(entry.name)) rmSync(path);
    else bytes += statSync(path).size;
  }
  return bytes;
}

const TOP_OF_PACKAGE = /node_modules\/(?:@[^/]+\/)?[^/@]+$/;
