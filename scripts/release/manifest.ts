import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The members of the checkout's `package.json` from which a package is made. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

export function readManifest(checkout: string): Manifest {
  return JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as Manifest;
}

/**
 * Makes the `package.json` of the gateway's package. `installed` are the packages beside the bundle, with their
 * versions. All of them are inside the package (`bundleDependencies`), so an installation downloads nothing and has
 * exactly the tested versions.
 */
export function packageManifest(
  manifest: Manifest,
  installed: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return {
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    license: manifest.license,
    type: 'module',
    bin: { tollgate: 'bin/tollgate.mjs' },
    engines: { node: '>=24' },
    dependencies: installed,
    bundleDependencies: Object.keys(installed),
  };
}
