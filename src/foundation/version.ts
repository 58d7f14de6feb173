import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The file in a package with the commit that it was built from. */
export const COMMIT_FILE = 'COMMIT';
const COMMIT = /^([0-9a-f]{12})[0-9a-f]{28,52}(-changed)?$/;

/**
 * The version with the first 12 digits of the commit: `0.1.0 (3f2a9c1b04de)`. A package that was built from changed
 * files has `-changed` behind them. Only the version in a folder that is neither a package nor a checkout of git.
 */
export function readBuild(root: string = ROOT): string {
  const [, commit, changed = ''] = COMMIT.exec(read(join(root, COMMIT_FILE)) ?? headOf(root) ?? '') ?? [];
  return commit === undefined ? VERSION : `${VERSION} (${commit}${changed})`;
}

/** The commit of a checkout. Git itself is not asked, because it may be missing, and takes longer than a start has. */
function headOf(root: string): string | null {
  const linked = /^gitdir: (.+)$/.exec(read(join(root, '.git')) ?? '')?.[1];
  const git = resolve(root, linked ?? '.git');
  const head = read(join(git, 'HEAD'));
  const ref = /^ref: (refs\/\S+)$/.exec(head ?? '')?.[1];
  if (ref === undefined) return head;
  // A worktree has its branches in the folder of the repository.
  const common = resolve(git, read(join(git, 'commondir')) ?? '.');
  const packed = read(join(common, 'packed-refs'))
    ?.split('\n')
    .find((line) => line.endsWith(` ${ref}`));
  return read(join(common, ref)) ?? packed?.slice(0, -ref.length - 1) ?? null;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}
