import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The members of the checkout's `package.json` from which a package is made. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly imports: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

export function readManifest(checkout: string): Manifest {
  return JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as Manifest;
}

/** Names of the optional packages with Node binaries. A checkout installs them for machines with an older Node. */
export const nodeBinaries = (manifest: Manifest): readonly string[] =>
  Object.keys(manifest.optionalDependencies).filter((name) => name.startsWith('node-'));

/**
 * Makes the `package.json` of a package. All dependencies are inside the package (`bundleDependencies`), so an
 * installation downloads nothing and has exactly the tested versions. The Node binaries are left out, because npm would
 * install 200 MB for everybody.
 */
export function packageManifest(manifest: Manifest): Record<string, unknown> {
  const binaries = nodeBinaries(manifest);
  const optional = Object.entries(manifest.optionalDependencies).filter(([name]) => !binaries.includes(name));
  const dependencies = { ...manifest.dependencies, ...Object.fromEntries(optional) };
  const imports = Object.entries(manifest.imports).map(([name, path]) => [name, path.replace(/\.ts$/, '.js')] as const);
  return {
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    license: manifest.license,
    type: 'module',
    bin: { tollgate: 'bin/tollgate.mjs' },
    imports: Object.fromEntries(imports),
    engines: { node: '>=24' },
    dependencies,
    bundleDependencies: Object.keys(dependencies),
  };
}
