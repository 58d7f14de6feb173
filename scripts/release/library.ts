import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMON_LICENCES, type SystemPackage, unpackPackages } from './debian.ts';
import type { PlatformNode } from './nodes.ts';

/** The library of Node that small systems lack, as it lies in an executable. */
export interface NodeLibrary {
  readonly name: string;
  readonly bytes: Buffer;
  /** Debian's text of the copyright, and the licence that it names. */
  readonly licence: string;
  readonly packages: readonly SystemPackage[];
}

const NAME = 'libatomic.so.1';
const PACKAGE = 'libatomic1';

/**
 * Fetches the library for a Node of Linux into the folder `work`; null for another system, whose Node needs none.
 * Throws if it needs a newer glibc than Node does: it is that of the Debian on which the release is built.
 */
export function libraryFor({ platform, folder }: PlatformNode, work: string): NodeLibrary | null {
  const [system, arch] = platform.split('-') as [string, string];
  if (system !== 'linux') return null;
  const { root, packages } = unpackPackages([PACKAGE], arch, work);
  const bytes = readFileSync(globSync(`usr/lib/*/${NAME}`, { cwd: root }).map((path) => join(root, path))[0]!);
  const [its, nodes] = [bytes, readFileSync(join(folder, 'bin', 'node'))].map(glibcOf) as [number, number];
  if (its > nodes)
    throw new Error(`${NAME} needs glibc 2.${its}, and Node 2.${nodes}: build the release on an older Debian`);
  const texts = [join('usr/share/licenses', PACKAGE), join(COMMON_LICENCES, 'GPL-3')];
  const licence = texts.map((path) => readFileSync(join(root, path), 'utf8')).join('\n');
  return { name: NAME, bytes, licence, packages };
}

/** The newest glibc whose symbols a program or library names: 28 of 2.28. */
function glibcOf(bytes: Buffer): number {
  const named = bytes.toString('latin1').matchAll(/GLIBC_2\.(\d+)/g);
  return Math.max(...named.map(([, minor]) => Number(minor)));
}
