import { randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Confined {
  readonly args: readonly string[];
  readonly readable: readonly string[];
}

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** A way to start Node behind a wall of the kernel. Whether it holds on this machine is for the probe to find out. */
export interface Candidate {
  /** Completes "packages run …". */
  readonly name: string;
  launch(confined: Confined, limits: Limits): Launch;
}

/** Bounds that the kernel holds for one process. */
export interface Limits {
  /** Writable memory in bytes, counted as in RLIMIT_DATA; null: not bounded. */
  readonly dataBytes: number | null;
}

/** Not PATH, on which another program of the same name may come first, such as one of node_modules/.bin. */
const PROGRAM_FOLDERS = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'];
const findHelper = (name: string): string | null =>
  PROGRAM_FOLDERS.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;

/** The libraries of Node, and the helpers that are still to run when nothing else can be seen. */
const SYSTEM = ['/usr/lib', '/usr/lib64', '/usr/bin', '/usr/sbin', '/lib', '/lib64', '/bin', '/sbin'];
/** Folders where this Node found its libraries beside the system's, as an executable does whose Node brings one. */
const LIBRARIES: readonly string[] = [...new Set(loadedLibraries().map((path) => dirname(path)))].filter(
  (folder) => !SYSTEM.some((one) => `${folder}/`.startsWith(`${one}/`)),
);
const seen = (readable: readonly string[]): readonly string[] =>
  // Parents first: what is mounted below them is there already.
  [...new Set([...SYSTEM, process.execPath, ...LIBRARIES, ...readable])].filter((path) => existsSync(path)).sort();

/** The environment with which another process of this Node finds the same libraries. */
export const ENVIRONMENT: Readonly<Record<string, string>> =
  LIBRARIES.length === 0 ? {} : { LD_LIBRARY_PATH: LIBRARIES.join(':') };

function loadedLibraries(): readonly string[] {
  const maps = '/proc/self/maps';
  if (!existsSync(maps)) return [];
  const paths = readFileSync(maps, 'utf8')
    .split('\n')
    .map((line) => line.slice(line.indexOf('/')));
  return paths.filter((path) => /\.so[.\d]*$/.test(path));
}

/**
 * The candidates of this machine, the strongest first. `folder` is where a process begins that sees the whole machine:
 * relative paths lead nowhere from there. `find` gives the path of a helper.
 */
export function listCandidates(
  folder: string,
  find: (name: string) => string | null = findHelper,
): readonly Candidate[] {
  if (process.platform !== 'linux') return [];
  const isRoot = process.getuid?.() === 0;
  const [unshare, setpriv, bwrap, shell] = ['unshare', 'setpriv', 'bwrap', 'sh'].map(find);
  const candidates: Candidate[] = [];
  const spaces = (name: string, own: readonly string[], become: (user: number) => readonly string[]): Candidate => ({
    name,
    launch(confined, limits) {
      const privileges = [setpriv!, ...become(ownUser()), ...WITHOUT_PRIVILEGES];
      const inside = [...privileges, ...limited(confined.args, limits)];
      const args = [
        ...own,
        ...NAMESPACES,
        shell!,
        '-c',
        SCRIPT,
        'tollgate',
        ...seen(confined.readable),
        '--',
        ...inside,
      ];
      return { command: unshare!, args, cwd: '/' };
    },
  });
  if (unshare && setpriv && shell && isRoot)
    candidates.push(
      spaces('as users of their own, in namespaces without network and files (unshare)', [], (user) => [
        `--reuid=${user}`,
        `--regid=${user}`,
        '--clear-groups',
      ]),
    );
  if (bwrap)
    candidates.push({
      name: 'in namespaces without network and files (bubblewrap)',
      launch: ({ args, readable }, limits) => ({
        command: bwrap,
        args: [
          ...BWRAP,
          ...seen(readable).flatMap((path) => ['--ro-bind', path, path]),
          '--remount-ro',
          '/',
          '--chdir',
          '/',
          '--',
          ...limited(args, limits),
        ],
        cwd: '/',
      }),
    });
  if (unshare && setpriv && shell && !isRoot)
    candidates.push(
      spaces('in namespaces without network and files (unshare)', ['--user', '--map-root-user'], () => []),
    );
  const landlock = (readable: readonly string[]): readonly string[] => [
    setpriv!,
    '--no-new-privs',
    '--landlock-access',
    'fs',
    ...seen([...readable, '/dev/null', '/etc/ssl/openssl.cnf']).flatMap((path) => [
      '--landlock-rule',
      `path-beneath:read-file,execute${isFolder(path) ? ',read-dir' : ''}:${path}`,
    ]),
  ];
  if (isRoot)
    candidates.push({
      name: 'as users of their own',
      launch({ args }, limits) {
        const [command, ...more] = limited(args, limits);
        const user = ownUser();
        return { command: command!, args: more, cwd: folder, uid: user, gid: user };
      },
    });
  else if (setpriv)
    candidates.push({
      name: 'without files (Landlock, by setpriv)',
      launch({ args, readable }, limits) {
        const [command, ...more] = [...landlock(readable), ...limited(args, limits)];
        return { command: command!, args: more, cwd: folder };
      },
    });
  return candidates;
}

/** Without a wall, but with the bounds of the kernel where the system has the helper for them. */
export const withoutWall = (folder: string): Candidate => ({
  name: 'without a second wall',
  launch({ args }, limits) {
    const [command, ...more] = limited(args, limits);
    return { command: command!, args: more, cwd: folder };
  },
});

const isFolder = (path: string): boolean => existsSync(`${path}/.`);

/**
 * An id that no package of the system uses, so that processes of packages cannot send signals to each other either.
 * https://systemd.io/UIDS-GIDS/ lists 60578 to 61183 as unused, and they are also there in containers of 65,536 ids.
 */
const ownUser = (): number => randomInt(60_578, 61_184);

const NAMESPACES = ['--mount', '--net', '--ipc', '--uts', '--pid', '--fork', '--kill-child=SIGKILL'];
const BWRAP = ['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL', '--proc', '/proc'];
const WITHOUT_PRIVILEGES = ['--bounding-set=-all', '--inh-caps=-all', '--no-new-privs'];

/** Node with these arguments, without core files, and so that it can write no file and take no more memory. */
function limited(args: readonly string[], { dataBytes }: Limits): readonly string[] {
  const node = [process.execPath, ...args];
  const prlimit = process.platform === 'linux' ? findHelper('prlimit') : null;
  if (prlimit === null) return node;
  return [prlimit, '--core=0', '--fsize=0', ...(dataBytes === null ? [] : [`--data=${dataBytes}`]), ...node];
}

/**
 * Makes a file system of what the program reads, and nothing else, read-only, and becomes the program in it. It stands
 * on /sys, which is a folder on every Linux and which the program does not need. The gateway's umask may keep folders
 * from the user that the program becomes.
 */
const SCRIPT = `
set -e
umask 022
PATH=/usr/bin:/usr/sbin:/bin:/sbin
root=/sys
mount -t tmpfs -o mode=755,nosuid,nodev none "$root"
while [ "$1" != -- ]; do
  if [ ! -e "$root$1" ]; then
    if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$root\${1%/*}"; : > "$root$1"; fi
  fi
  mount --bind "$1" "$root$1"
  mount -o remount,bind,ro,nosuid,nodev "$root$1" || mount -o remount,bind,ro,nosuid,nodev,noexec "$root$1"
  shift
done
shift
mkdir "$root/proc"
mount -t proc -o nosuid,nodev,noexec none "$root/proc" 2> /dev/null || true
mount -o remount,bind,ro,nosuid,nodev "$root"
cd "$root"
unset PWD OLDPWD
exec chroot "$root" "$@"
`;
