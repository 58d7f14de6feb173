import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';

const CHECKOUT = resolve(import.meta.dirname, '../..');
/** The programs that are killed, with their dependencies. */
const CHILD = [
  'test/support/crash-child.ts',
  'test/support/crash-price.ts',
  'test/support/archive-child.ts',
  'test/support/archived-books.ts',
];

export interface Mutation {
  /** Path below the checkout's root. */
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

export interface Mutant {
  /** URL of a module in the changed copy. */
  url(file: string): string;
  path(file: string): string;
  dispose(): void;
}

/**
 * Makes a copy of the ledger and the store without some protection, to prove that the tests notice. Every text to
 * replace must occur exactly once.
 */
export function createMutant(mutations: readonly Mutation[]): Mutant {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-mutant-'));
  for (const part of [
    'src/billing',
    'src/foundation/store',
    'src/foundation/version.ts',
    'src/foundation/maps.ts',
    'src/foundation/wire/collections.ts',
    'src/foundation/wire/places.ts',
    'src/foundation/wire/shares.ts',
    'package.json',
    ...CHILD,
  ])
    cpSync(join(CHECKOUT, part), join(folder, part), { recursive: true });
  symlinkSync(join(CHECKOUT, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, find, put } of mutations) {
    const path = join(folder, file);
    const parts = readFileSync(path, 'utf8').split(find);
    if (parts.length !== 2)
      throw new Error(`${file} has ${parts.length - 1} times what the mutation replaces: ${find}`);
    writeFileSync(path, parts.join(put));
  }
  const path = (file: string) => join(folder, file);
  return {
    url: (file) => pathToFileURL(path(file)).href,
    path,
    dispose: () => rmSync(folder, { recursive: true }),
  };
}
