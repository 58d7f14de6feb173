import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findBuilt, ROOT } from '../../../src/console/pages/web/page-files.ts';

// Where the pages come from: built in a checkout when they have changed, brought along by a package, or missing.

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'checkout-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const signal = new AbortController().signal;
const find = async () => {
  const built = await findBuilt({ root, signal });
  return 'folder' in built ? built.folder : built.reason;
};

/** A checkout whose pages are quickly built: their script is short. The setup of the run builds the real ones. */
function makeCheckout(): void {
  cpSync(join(ROOT, 'web'), join(root, 'web'), { recursive: true });
  writeFileSync(join(root, 'web/src/main.tsx'), "document.title = 'tollgate';\n");
  cpSync(join(ROOT, 'tsconfig.json'), join(root, 'tsconfig.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
}

test('a checkout builds its pages once, and again after a change', async () => {
  makeCheckout();
  const folder = await find();
  expect(readdirSync(folder)).toContain('index.html');
  expect(await find()).toBe(folder);
  writeFileSync(join(root, 'web/src/style-files.d.ts'), "declare module '*.css';\n// changed\n");
  const changed = await find();
  expect(changed).not.toBe(folder);
  // The same sources give the same files, whatever else is in the folder.
  expect(readdirSync(changed, { recursive: true })).toEqual(readdirSync(folder, { recursive: true }));
});

test('two gateways that build at once use one build', async () => {
  makeCheckout();
  const [one, other] = await Promise.all([find(), find()]);
  expect(one).toBe(other);
  expect(readdirSync(join(root, '.cache/web'))).toHaveLength(1);
});

test('a package brings them along', async () => {
  mkdirSync(join(root, 'dist/web'), { recursive: true });
  writeFileSync(join(root, 'dist/web/index.html'), '');
  expect(await find()).toBe(join(root, 'dist/web'));
});

test('without either, one sentence says what to do', async () => {
  expect(await find()).toMatch(/^The web pages are not built.*npm ci.*The API works without them: see \/docs$/);
});

test('a mistake in a page is told with its place', async () => {
  makeCheckout();
  writeFileSync(join(root, 'web/src/main.tsx'), 'const = 1;\n');
  expect(await find()).toMatch(/^The web pages could not be built: [\s\S]*main\.tsx/);
  expect(readdirSync(join(root, '.cache/web'))).toEqual([]);
});
