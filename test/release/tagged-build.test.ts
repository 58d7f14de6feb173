import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ROOT } from '../architecture/source.ts';
import { changelog, ENV, makeCheckout } from './tag-checkout.ts';

const said = (text: string) => expect.stringContaining(text) as string;

it('a release tags the commit that it built, in a clone with a dated changelog, and nothing before', () => {
  const work = mkdtempSync(join(tmpdir(), 'tollgate-tagged-'));
  onTestFinished(() => rmSync(work, { recursive: true }));
  const [checkout, out] = [join(work, 'checkout'), join(work, 'out')];
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@users.example', ...args], {
      cwd: checkout,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  // Without the tags of this checkout, and without its refs: nothing here reaches them.
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', '--no-tags', ROOT, checkout], { stdio: 'pipe' });
  git('remote', 'remove', 'origin');
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  writeFileSync(join(checkout, '.git/info/exclude'), 'node_modules\n');
  const release = (...args: readonly string[]) =>
    spawnSync(
      process.execPath,
      [join(checkout, 'scripts/release/release.ts'), '--platforms', '', '--no-image', '--out', out, ...args],
      {
        cwd: checkout,
        encoding: 'utf8',
        env: ENV,
      },
    );
  const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { readonly version: string };
  const file = join(checkout, 'CHANGELOG.md');
  const date = (text: string) =>
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^## (\S+) \(.*\)$/m, `## $1 (${text})`));
  date('unreleased');
  git('commit', '--all', '--quiet', '--allow-empty', '--message', 'No date');
  expect(release('--tag')).toMatchObject({ status: 1, stderr: said('write the date') });
  date('2026-12-01');
  expect(release('--tag')).toMatchObject({ status: 1, stderr: said('not committed') });
  git('commit', '--all', '--quiet', '--message', 'A date');
  expect(release('--tag', '--dirty')).toMatchObject({ status: 1, stderr: said('clean') });
  expect(release('--tag', '--dry-run')).toMatchObject({
    status: 0,
    stdout: said(`v${version} would be made, not signed, on `),
  });
  expect(git('tag')).toBe('');

  const built = release('--tag');
  expect(built).toMatchObject({ status: 0, stdout: said('(not signed: there is no key)') });
  const head = git('rev-parse', 'HEAD');
  expect(git('rev-parse', `v${version}^{commit}`)).toBe(head);
  expect(git('cat-file', '-t', `v${version}`)).toBe('tag');
  const statement = readdirSync(out).find((name) => name.endsWith('.intoto.json'))!;
  expect(readFileSync(join(out, statement), 'utf8')).toContain(head);
}, 300_000);

it('the key that is given signs the tag, or that of git', () => {
  const { work, git, run, tag, change } = makeCheckout();
  change('package.json', '{ "name": "tollgate", "version": "0.2.0" }');
  change('CHANGELOG.md', changelog('2026-02-01'));
  const key = join(work, 'key');
  run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key);
  const signers = join(work, 'signers');
  writeFileSync(signers, `ada@users.example ${readFileSync(`${key}.pub`, 'utf8')}`);
  const verify = () => git('-c', `gpg.ssh.allowedSignersFile=${signers}`, 'tag', '--verify', 'v0.2.0');
  expect(tag('--dry-run', '--key', key)).toMatchObject({ status: 0, stdout: said('would be made and signed') });
  expect(tag('--key', key)).toMatchObject({ status: 0, stdout: said('(signed)') });
  expect(verify()).toContain('- New.');
  git('tag', '--delete', 'v0.2.0');
  git('config', 'gpg.format', 'ssh');
  git('config', 'user.signingKey', key);
  expect(tag()).toMatchObject({ status: 0, stdout: said('(signed)') });
  expect(verify()).toContain('- New.');
});
