import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const SCRIPT = resolve(import.meta.dirname, '../../scripts/release/tag.ts');

test('a release is tagged with its section of the changelog, once, and only with a date', () => {
  const checkout = mkdtempSync(join(tmpdir(), 'tollgate-tag-'));
  onTestFinished(() => rmSync(checkout, { recursive: true }));
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@users.example', ...args], {
      cwd: checkout,
      encoding: 'utf8',
    });
  const env = { ...process.env, GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@users.example' };
  const tag = () =>
    spawnSync(process.execPath, [SCRIPT, '--unsigned', '--checkout', checkout], { env, encoding: 'utf8' });
  const change = (name: string, text: string) => {
    writeFileSync(join(checkout, name), text);
    git('add', '--all');
    git('commit', '--quiet', '--message', name);
  };
  git('init', '--quiet');
  change('package.json', '{ "name": "tollgate", "version": "0.2.0" }');
  change('CHANGELOG.md', '# Changelog\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n');
  expect(tag()).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('no section "## 0.2.0 (<date>)"') as string,
  });
  const sections = (date: string) =>
    `# Changelog\n\n## 0.2.0 (${date})\n\n# Not a comment\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n`;
  change('CHANGELOG.md', sections('unreleased'));
  expect(tag()).toMatchObject({ status: 1, stderr: expect.stringContaining('write the date') as string });
  change('CHANGELOG.md', sections('2026-02-01'));
  writeFileSync(join(checkout, 'more'), '');
  expect(tag()).toMatchObject({ status: 1, stderr: expect.stringContaining('not committed') as string });
  rmSync(join(checkout, 'more'));
  expect(tag()).toMatchObject({ status: 0, stdout: expect.stringMatching(/^v0\.2\.0 is [0-9a-f]{12}\./) as string });
  expect(git('cat-file', '-p', 'v0.2.0')).toMatch(/\n\ntollgate 0\.2\.0\n\n# Not a comment\n\n- New\.\n$/);
  expect(tag()).toMatchObject({ status: 1, stderr: expect.stringContaining('There is a tag v0.2.0') as string });
});
