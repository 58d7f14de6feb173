import { realpathSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, sep } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The code of the error of a call whose package could not be started. */
export const PACKAGE_FAILED = 'TOLLGATE_PACKAGE_FAILED';

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

/** The message says why the package cannot be used. */
export class PackageUnusable extends Error {
  override readonly name = 'PackageUnusable';
  readonly right: string;
  constructor(why: string, right: string) {
    super(why);
    this.right = right;
  }
}

/** Before Node 25 the permission model does not know the network, so a package could connect to anything. */
const CONFINES = '--allow-net';

/**
 * Finds the package of a block: beside the file with the block, else beside this program. Throws PackageUnusable if it
 * is not there, or if this Node, whose flags are `flags`, cannot confine it.
 */
export function findPackage(
  { sdk, directory }: { readonly sdk: string; readonly directory: string },
  flags: ReadonlySet<string> = process.allowedNodeEnvironmentFlags,
): FoundPackage {
  const [specifier = '', factory = null] = sdk.split('#');
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (!flags.has(CONFINES))
    throw new PackageUnusable(
      `names the package ${name}, which needs Node 25 or newer, and this is ${process.version}`,
      'start tollgate with a newer Node. "npm ci" in its folder brings one, which on Linux needs the library libatomic: on Debian, "apt-get install libatomic1"',
    );
  for (const from of [pathToFileURL(`${directory}${sep}`).href, import.meta.url]) {
    const manifest = manifestOf(name, from);
    if (manifest !== null) return { specifier, factory, from, readable: foldersOf(manifest) };
  }
  throw new PackageUnusable(
    `names the package ${name}, which is not installed in ${directory}`,
    `install it beside this file: npm install --prefix ${directory} ${name}`,
  );
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
