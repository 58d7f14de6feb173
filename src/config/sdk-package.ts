import { realpathSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SdkTarget } from './blocks/sdk-options.ts';

/** The code of the error of a call whose package could not be started. */
export const PACKAGE_FAILED = 'TOLLGATE_PACKAGE_FAILED';

/** The place of a package, and the way to load it. */
interface FoundPackage {
  /** The name that its process imports, such as `@ai-sdk/google-vertex/edge`. */
  readonly specifier: string;
  /** The export that makes the provider; null: the only one whose name begins with `create`. */
  readonly factory: string | null;
  /** URL of the folder beside which it is installed. */
  readonly from: string;
  /** Folders with its files and those of the packages that it needs. Its process may read no others. */
  readonly readable: readonly string[];
}

/** The message says where the package is missing. */
export class PackageNotFound extends Error {
  override readonly name = 'PackageNotFound';
  /** How to install it. */
  readonly right: string;
  constructor(missing: string, directory: string) {
    super(`names the package ${missing}, which is not installed in ${directory}`);
    this.right = `install it beside this file: npm install --prefix ${directory} ${missing}`;
  }
}

/**
 * Finds the package of a block: beside the file with the block, else beside this program. Throws PackageNotFound.
 */
export function findPackage({ sdk, directory }: Pick<SdkTarget, 'sdk' | 'directory'>): FoundPackage {
  const [specifier = '', factory = null] = sdk.split('#');
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  for (const from of [pathToFileURL(`${directory}${sep}`).href, import.meta.url]) {
    const manifest = manifestOf(name, from);
    if (manifest !== null) return { specifier, factory, from, readable: foldersOf(manifest) };
  }
  throw new PackageNotFound(name, directory);
}

function manifestOf(name: string, from: string): string | null {
  try {
    return findPackageJSON(name, from) ?? null;
  } catch {
    return null;
  }
}

const MODULES = `${sep}node_modules${sep}`;

/** The outermost `node_modules`, since what a package needs may be there. Some installers make it of links. */
function foldersOf(manifest: string): readonly string[] {
  const folders = [manifest, realpathSync(manifest)].map((path) => {
    const at = path.indexOf(MODULES);
    return at === -1 ? `${dirname(path)}${sep}` : path.slice(0, at + MODULES.length);
  });
  return [...new Set(folders)];
}
