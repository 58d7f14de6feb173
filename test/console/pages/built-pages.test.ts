import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMMITTED, writePages } from '../../../scripts/web-pages.ts';
import { findBuilt, ROOT } from '../../../src/console/pages/web/page-files.ts';

// Where the pages come from: committed in a checkout, built there when they have changed, brought along by a package,
// or missing.

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

describe('the committed pages', () => {
  /** A checkout as one gets it, without what builds pages. */
  function makeSmallCheckout(): void {
    for (const name of ['web', 'dist/web']) cpSync(join(ROOT, name), join(root, name), { recursive: true });
  }
  const change = () => writeFileSync(join(root, 'web/src/main.tsx'), "document.title = 'changed';\n");

  test('are those that a build of the sources gives', async () => {
    await writePages(root);
    const files = readdirSync(COMMITTED, { recursive: true, encoding: 'utf8' }).toSorted();
    const advice = 'npm run docs writes the pages of dist/web anew';
    expect(readdirSync(root, { recursive: true, encoding: 'utf8' }).toSorted(), advice).toEqual(files);
    for (const file of files.filter((each) => statSync(join(root, each)).isFile()))
      expect(readFileSync(join(root, file)).equals(readFileSync(join(COMMITTED, file))), `${file}: ${advice}`).toBe(
        true,
      );
  });

  test('are served without what builds pages, with compressed copies', async () => {
    makeSmallCheckout();
    const folder = await find();
    expect(folder).toContain('.cache/web');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    for (const file of readdirSync(join(root, 'dist/web'), { recursive: true, encoding: 'utf8' }))
      expect(files).toContain(file);
    expect(files.filter((file) => file.endsWith('.br')).length).toBeGreaterThan(50);
    expect(await find()).toBe(folder);
  });

  test('are served although they are older, and a sentence says so', async () => {
    makeSmallCheckout();
    change();
    const built = await findBuilt({ root, signal });
    expect(built).toEqual({ folder: join(root, 'dist/web'), older: expect.stringMatching(/older than web.*npm ci/) });
  });

  test('are not served when their sources have changed and can be built', async () => {
    makeCheckout();
    cpSync(join(ROOT, 'dist/web'), join(root, 'dist/web'), { recursive: true });
    const folder = await find();
    expect(readdirSync(join(folder, 'assets'))).not.toEqual(readdirSync(join(COMMITTED, 'assets')));
  });

  test('are served as they are from a disk that cannot be written', async () => {
    makeSmallCheckout();
    // Root may write anywhere, but not make a folder of a file.
    writeFileSync(join(root, '.cache'), '');
    expect(await find()).toBe(join(root, 'dist/web'));
  });
});

test('without either, one sentence says what to do', async () => {
  expect(await find()).toMatch(
    /^The web pages are not built.*npm ci.*The API works without them: see \/openapi\.json$/,
  );
});

test('a mistake in a page is told with its place', async () => {
  makeCheckout();
  writeFileSync(join(root, 'web/src/main.tsx'), 'const = 1;\n');
  expect(await find()).toMatch(/^The web pages could not be built: [\s\S]*main\.tsx/);
  expect(readdirSync(join(root, '.cache/web'))).toEqual([]);
});
