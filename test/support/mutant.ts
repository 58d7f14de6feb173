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

/** The changed text of the file. Throws unless the text to replace occurs exactly once. */
export function mutatedText({ file, find, put }: Mutation, folder = CHECKOUT): string {
  const parts = readFileSync(join(folder, file), 'utf8').split(find);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times what the mutation replaces: ${find}`);
  return parts.join(put);
}

/** Makes a copy of the ledger and the store without some protection, to prove that the tests notice. */
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
  const path = (file: string) => join(folder, file);
  for (const mutation of mutations) writeFileSync(path(mutation.file), mutatedText(mutation, folder));
  return {
    url: (file) => pathToFileURL(path(file)).href,
    path,
    dispose: () => rmSync(folder, { recursive: true }),
  };
}
