import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { environmentOfMachine } from './named-programs.ts';

const CACHE = resolve(import.meta.dirname, '../../.cache');

/** The folder to which `unpackPackage` unpacks under this name. */
export const unpackedAt = (name: string): string => join(CACHE, name);

/** The environment with which a program that `unpackPackage` unpacked finds its libraries. */
export function unpackedEnvironment(name: string): NodeJS.ProcessEnv {
  const folders = ['lib', 'usr/lib'].flatMap((path) => foldersWithLibraries(join(unpackedAt(name), path), 2));
  return { ...process.env, LD_LIBRARY_PATH: folders.join(':') };
}

/** Debian's libraries are in folders such as usr/lib/x86_64-linux-gnu and usr/lib/x86_64-linux-gnu/pulseaudio. */
function foldersWithLibraries(folder: string, depth: number): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  const within = depth === 0 ? [] : entries.filter((entry) => entry.isDirectory());
  const own = entries.some((entry) => /\.so(?:\.|$)/.test(entry.name)) ? [folder] : [];
  return [...own, ...within.flatMap((entry) => foldersWithLibraries(join(folder, entry.name), depth - 1))];
}

/** Whether this machine can download Debian packages. */
export const hasDebianPackages = (): boolean => existsSync('/usr/bin/apt-get') && existsSync('/usr/bin/dpkg-deb');

/**
 * Downloads a Debian package (or several, separated by spaces) and its missing dependencies, and unpacks them in
 * `.cache`. Nothing is installed. `finish` may change the unpacked files. Several processes may do this at once, and
 * the first one to finish wins. Throws the error of apt-get.
 */
export function unpackPackage(name: string, wanted: string, finish: (root: string) => void = () => {}): void {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, `${name}-download-`));
  try {
    const packages = join(work, 'packages');
    mkdirSync(packages);
    fetchPackages(wanted, work, packages);
    const root = join(work, 'root');
    for (const file of readdirSync(packages)) {
      if (file.endsWith('.deb'))
        execFileSync('dpkg-deb', ['-x', join(packages, file), root], { env: environmentOfMachine() });
    }
    finish(root);
    try {
      renameSync(root, unpackedAt(name));
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function fetchPackages(wanted: string, work: string, target: string): void {
  try {
    fetchWith(wanted, ['-o', 'APT::Sandbox::User=root'], target);
  } catch {
    // The system's package lists are empty, old or not readable, so separate lists are downloaded.
    const lists = join(work, 'lists');
    const cache = join(work, 'cache');
    mkdirSync(join(lists, 'partial'), { recursive: true });
    mkdirSync(join(cache, 'archives/partial'), { recursive: true });
    const options = ['-o', 'APT::Sandbox::User=root', '-o', `Dir::State::lists=${lists}`, '-o', `Dir::Cache=${cache}`];
    apt([...options, 'update'], target);
    fetchWith(wanted, options, target);
  }
}

/** Downloads the package and its dependencies that the system doesn't have. */
function fetchWith(wanted: string, options: readonly string[], target: string): void {
  const names = wanted.split(' ');
  const plan = apt([...options, '-s', 'install', '--no-install-recommends', ...names], target);
  const missing = [...plan.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? '');
  apt([...options, 'download', ...new Set([...names, ...missing])], target);
}

function apt(args: readonly string[], cwd: string): string {
  const result = spawnSync('apt-get', args, {
    cwd,
    encoding: 'utf8',
    env: { ...environmentOfMachine(), LC_ALL: 'C' },
    timeout: 180_000,
  });
  if (result.status !== 0) throw new Error(`apt-get ${args.join(' ')} failed: ${result.stderr.trim().slice(-2000)}`);
  return result.stdout;
}
