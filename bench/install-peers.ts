import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The benchmark installs the peers from its own lock file, so that `npm ci` of the checkout stays small. */
export function installPeers(wanted: string): void {
  if (existsSync(here(`node_modules/${wanted}`))) return;
  process.stderr.write('installing the peers into bench/node_modules\n');
  const { status } = spawnSync('npm', ['ci', '--prefix', here('.'), '--no-audit', '--no-fund'], {
    cwd: here('.'),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) process.stderr.write('npm ci --prefix bench failed: the table will lack the peers\n');
}
