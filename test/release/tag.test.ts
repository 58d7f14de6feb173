import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { changelog, makeCheckout } from './tag-checkout.ts';

const said = (text: string) => expect.stringContaining(text) as string;

test('a release is tagged with its section of the changelog, on one commit, and only with a date', () => {
  const { checkout, git, tag, change } = makeCheckout();
  change('package.json', '{ "name": "tollgate", "version": "0.2.0" }');
  change('CHANGELOG.md', '# Changelog\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n');
  expect(tag()).toMatchObject({ status: 1, stderr: said('no section "## 0.2.0 (<date>)"') });
  change('CHANGELOG.md', changelog('unreleased'));
  expect(tag()).toMatchObject({ status: 1, stderr: said('write the date') });
  change('CHANGELOG.md', changelog('2026-02-01'));
  writeFileSync(join(checkout, 'more'), '');
  expect(tag()).toMatchObject({ status: 1, stderr: said('not committed') });
  rmSync(join(checkout, 'more'));

  expect(tag('--dry-run')).toMatchObject({ status: 0, stdout: said('v0.2.0 would be made, not signed, on ') });
  expect(git('tag')).toBe('');
  const head = git('rev-parse', 'HEAD').trim();
  expect(tag()).toMatchObject({ status: 0, stdout: said(`v0.2.0 is ${head.slice(0, 12)} (not signed`) });
  expect(git('cat-file', '-p', 'v0.2.0')).toMatch(
    new RegExp(`^object ${head}\ntype commit\n[^]*\n\ntollgate 0\\.2\\.0\n\n# Not a comment\n\n- New\\.\n$`),
  );
  expect(tag()).toMatchObject({ status: 0, stdout: said('was there already') });
  expect(tag('--dry-run')).toMatchObject({ status: 0, stdout: said('v0.2.0 is there already, on ') });
  change('more', 'A later commit.');
  const refused = { status: 1, stderr: said(`There is a tag v0.2.0 on another commit, ${head.slice(0, 12)}`) };
  expect(tag()).toMatchObject(refused);
  expect(tag('--dry-run')).toMatchObject(refused);
  expect(git('rev-parse', 'v0.2.0^{commit}').trim()).toBe(head);
});
