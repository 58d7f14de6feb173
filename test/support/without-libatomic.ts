import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The library that Node 26 needs and that small systems lack. */
export const LIBATOMIC = 'libatomic.so.1';

/** Where this process found the library. null of a Node that runs without it. */
function loadedLibatomic(): string | null {
  const maps = '/proc/self/maps';
  if (!existsSync(maps)) return null;
  return / (\/.*\/libatomic\.so\.1[.\d]*)$/m.exec(readFileSync(maps, 'utf8'))?.[1] ?? null;
}

/**
 * A layer over the system's folder hides the file also where a wall of packages binds the folder anew. Only root may
 * make it; for others an empty file is in its place.
 */
const HIDE = `
set -e
library=$1 folder=$2
shift 2
mount -t tmpfs none /sys
mkdir /sys/upper /sys/work
{ mount -t overlay -o "lowerdir=$folder,upperdir=/sys/upper,workdir=/sys/work" none "$folder" && rm "$library"; } 2>/dev/null ||
  mount --bind /dev/null "$library"
exec "$@"
`;
const SPACES = ['--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])];

/** Copies the library of this process into a new folder. Returns its path. */
export function copyLibatomic(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, LIBATOMIC);
  copyFileSync(loadedLibatomic()!, path);
  return path;
}

/**
 * The command that runs another one on this machine, but without its library, in a namespace of its own. null where
 * this user may make none, and where this Node needs no such library.
 */
export function withoutLibatomic(command: readonly string[]): readonly [string, ...string[]] | null {
  const library = loadedLibatomic();
  if (library === null) return null;
  const folder = library.split('/').slice(0, 3).join('/');
  const before = [...SPACES, 'sh', '-c', HIDE, 'sh', library, folder];
  return spawnSync('unshare', [...before, 'true']).status === 0 ? ['unshare', ...before, ...command] : null;
}
