import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';

const SCRIPT = resolve(import.meta.dirname, '../../scripts/release/tag.ts');

/** Nothing of the git of this machine, above all no key. */
export const ENV = {
  ...process.env,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  ...Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap((who) => [
      [`GIT_${who}_NAME`, 'Ada'],
      [`GIT_${who}_EMAIL`, 'ada@users.example'],
    ]),
  ),
};

/** A repository to tag, far from this one. `tag` runs the script in it. */
export function makeCheckout() {
  const work = mkdtempSync(join(tmpdir(), 'tollgate-tag-'));
  onTestFinished(() => rmSync(work, { recursive: true }));
  const checkout = join(work, 'checkout');
  const run = (file: string, ...args: readonly string[]) =>
    execFileSync(file, args, { cwd: work, env: ENV, encoding: 'utf8', stdio: 'pipe' });
  const git = (...args: readonly string[]) => run('git', '-C', checkout, ...args);
  run('git', 'init', '--quiet', checkout);
  return {
    work,
    checkout,
    run,
    git,
    tag: (...args: readonly string[]) =>
      spawnSync(process.execPath, [SCRIPT, '--checkout', checkout, ...args], { env: ENV, encoding: 'utf8' }),
    change(name: string, text: string): void {
      writeFileSync(join(checkout, name), text);
      git('add', '--all');
      git('commit', '--quiet', '--message', name);
    },
  };
}

export const changelog = (date: string) =>
  `# Changelog\n\n## 0.2.0 (${date})\n\n# Not a comment\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n`;
