import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Reached } from './reached-files.ts';

/** Files that no program reads: types, source maps, guides, sources of native code. Licences are kept. */
const UNREAD = /\.(?:[cm]?ts|map|md|markdown|tsbuildinfo|flow|c|cc|h|s|sage|java|gyp|m4|ac|am)$/i;
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

/** Deletes packages from `node_modules` that none of `wanted` needs. */
export function pruneModules(modules: string, wanted: readonly string[]): void {
  deleteUnneeded(modules, wanted);
  for (const name of UNUSED) rmSync(join(modules, name), { recursive: true, force: true });
  rmSync(join(modules, '.package-lock.json'), { force: true });
  rmSync(join(modules, '.bin'), { recursive: true, force: true });
}

/**
 * Deletes the files that are not read at run time. What stays of a package is what the bundle reaches, or all of its
 * code and data if it computes what it loads; its licences; and its `package.json`, without which npm would miss it and
 * Node would not know the form of its modules. Returns the size of the rest in bytes.
 */
export function pruneFiles(modules: string, { files, whole }: Reached): number {
  let bytes = 0;
  const isNeeded = (path: string, name: string, owner: string) =>
    LICENCE.test(name) || name === 'package.json' || files.has(path) || (whole.has(owner) && !UNREAD.test(name));
  const prune = (folder: string, owner: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (!entry.isDirectory()) {
        if (isNeeded(path, entry.name, owner)) bytes += statSync(path).size;
        else rmSync(path);
        // Only a package's top-level folders are deleted by name, because `dist/test` may be code.
      } else if (folder === owner && UNREAD_FOLDERS.has(entry.name)) rmSync(path, { recursive: true });
      else {
        prune(path, PACKAGE.test(path) ? path : owner);
        if (readdirSync(path).length === 0) rmSync(path, { recursive: true });
      }
    }
  };
  prune(modules, '');
  return bytes;
}

interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const readPackage = (folder: string): PackageFile =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageFile;

/** Deletes packages at the top of `node_modules` that no package of `wanted` needs, directly or by another one. */
function deleteUnneeded(modules: string, wanted: readonly string[]): void {
  const needed = new Set<string>();
  const todo = wanted.map((name) => join(modules, name));
  for (let folder = todo.pop(); folder !== undefined; folder = todo.pop()) {
    if (needed.has(folder)) continue;
    needed.add(folder);
    const { dependencies, optionalDependencies, peerDependencies } = readPackage(folder);
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const own = join(folder, 'node_modules', name);
      const found = [own, join(modules, name)].find((path) => existsSync(path));
      if (found !== undefined) todo.push(found);
    }
  }
  for (const name of packagesOf(modules))
    if (!needed.has(join(modules, name))) rmSync(join(modules, name), { recursive: true });
}

/** The versions of packages of a `node_modules`, by name. */
export const versionsOf = (modules: string, names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, readPackage(join(modules, name)).version]));

/** `name@version` of a package. */
export function versioned(folder: string): string {
  const { name, version } = readPackage(folder);
  return `${name}@${version}`;
}

/** `name@version` of each package in a `node_modules`, also of those that packages have for themselves. */
export function installedIn(modules: string): readonly string[] {
  if (!existsSync(modules)) return [];
  const folders = packagesOf(modules).map((name) => join(modules, name));
  return folders.flatMap((folder) => [versioned(folder), ...installedIn(join(folder, 'node_modules'))]);
}

/** Names of the packages at the top of a `node_modules`. */
const packagesOf = (modules: string): readonly string[] =>
  readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules, name)).map((one) => `${name}/${one}`) : [name],
    );

const PACKAGE = /node_modules\/(?:@[^/]+\/)?[^/@][^/]*$/;
