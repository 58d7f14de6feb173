import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readBuild, VERSION } from '../../src/foundation/version.ts';

// A build is named by its version and its commit, in a checkout of git as in a package.

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'build-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const git = (folder: string, ...args: readonly string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], {
    cwd: folder,
    encoding: 'utf8',
  }).trim();

/** A repository with one commit. Returns what its build is to be called. */
function makeRepository(): string {
  git(root, 'init', '--quiet', '--initial-branch', 'main');
  git(root, 'commit', '--quiet', '--allow-empty', '--message', 'first');
  return `${VERSION} (${git(root, 'rev-parse', 'HEAD').slice(0, 12)})`;
}

test('a branch, packed branches and a single commit', () => {
  const name = makeRepository();
  expect(readBuild(root)).toBe(name);
  git(root, 'pack-refs', '--all');
  expect(readBuild(root)).toBe(name);
  git(root, 'checkout', '--quiet', '--detach');
  expect(readBuild(root)).toBe(name);
});

test('a worktree', () => {
  const name = makeRepository();
  const folder = join(root, 'other');
  git(root, 'worktree', 'add', '--quiet', '-b', 'a/branch', folder);
  expect(readBuild(folder)).toBe(name);
});

test('a package has a file, which says if it was built from changed files', () => {
  writeFileSync(join(root, 'COMMIT'), `${'0123456789abcdef'.repeat(2)}01234567\n`);
  expect(readBuild(root)).toBe(`${VERSION} (0123456789ab)`);
  writeFileSync(join(root, 'COMMIT'), `${'0123456789abcdef'.repeat(2)}01234567-changed\n`);
  expect(readBuild(root)).toBe(`${VERSION} (0123456789ab-changed)`);
});

test('the version alone where neither is, or where it is damaged', () => {
  expect(readBuild(root)).toBe(VERSION);
  mkdirSync(join(root, '.git'));
  writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/none\n');
  expect(readBuild(root)).toBe(VERSION);
});
