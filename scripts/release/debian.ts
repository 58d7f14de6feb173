import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Of } from './tar.ts';

/** A package of Debian of which a file of the release has parts. */
export interface SystemPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly sha256: string;
}

interface Unpacked {
  readonly root: string;
  readonly packages: readonly SystemPackage[];
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
/** The texts of licences that the packages name without having them. */
export const COMMON_LICENCES = 'usr/share/common-licenses';
const HAS_COMMON_LICENCES = 'base-files';

/** The name that Debian and OCI have for an architecture of Node. */
export const architectureOf = (arch: string): string => ARCHITECTURES[arch]!;

/**
 * Unpacks packages of Debian into `system` of the folder `work`: without documents, but with their licences, as
 * `usr/share/licenses/<package>`. Needs `apt-get` and `dpkg-deb`. One of the packages has to be `libatomic1`.
 */
export function unpackPackages(names: readonly string[], arch: string, work: string): Unpacked {
  const [debs, root] = [join(work, 'debs'), join(work, 'system')];
  for (const folder of [debs, root]) mkdirSync(folder, { recursive: true });
  const download = downloader(arch, work, debs);
  download(...names, HAS_COMMON_LICENCES);
  const fileOf = (name: string) =>
    join(
      debs,
      readdirSync(debs).find((file) => file.startsWith(`${name}_`))!,
    );
  const field = (path: string, name: string) =>
    execFileSync('dpkg-deb', ['--field', path, name], { encoding: 'utf8' }).trim();
  // It has the licence of all libraries of GCC.
  download(/gcc-\d+-base/.exec(field(fileOf('libatomic1'), 'Depends'))![0]);
  const packages = readdirSync(debs)
    .toSorted()
    .map((file) => {
      const path = join(debs, file);
      const name = field(path, 'Package');
      if (name === HAS_COMMON_LICENCES) unpackLicences(path, root, join(work, name));
      else execFileSync('dpkg-deb', ['--extract', path, root]);
      copyLicence(root, name);
      return {
        name,
        version: field(path, 'Version'),
        architecture: field(path, 'Architecture'),
        sha256: sha256Of(path),
      };
    });
  for (const name of ['doc', 'man', 'locale', 'lintian', 'gdb', 'initramfs-tools'])
    rmSync(join(root, 'usr/share', name), { recursive: true, force: true });
  return { root, packages };
}

/** Downloads packages: by the lists of this machine, or by fresh ones if it has none, or old ones, or no such ones. */
function downloader(arch: string, work: string, debs: string): (...names: readonly string[]) => void {
  const [lists, cache] = [join(work, 'lists'), join(work, 'cache')];
  const own = [`--option=Dir::State::lists=${lists}`, `--option=Dir::Cache=${cache}`];
  const always = [
    'APT::Sandbox::User=root',
    `APT::Architecture=${architectureOf(arch)}`,
    `APT::Architectures=${architectureOf(arch)}`,
  ].map((option) => `--option=${option}`);
  const apt = (options: readonly string[], ...args: readonly string[]) =>
    execFileSync('apt-get', [...always, ...options, ...args], { cwd: debs, stdio: 'pipe' });
  return (...names) => {
    try {
      apt([], 'download', ...names);
    } catch {
      mkdirSync(join(lists, 'partial'), { recursive: true });
      mkdirSync(join(cache, 'archives/partial'), { recursive: true });
      apt(own, 'update');
      apt(own, 'download', ...names);
    }
  };
}

/** Unpacks nothing else of the package, by the folder `aside`. */
function unpackLicences(path: string, root: string, aside: string): void {
  execFileSync('dpkg-deb', ['--extract', path, aside]);
  cpSync(join(aside, COMMON_LICENCES), join(root, COMMON_LICENCES), { recursive: true, verbatimSymlinks: true });
}

function copyLicence(root: string, name: string): void {
  const copyright = join(root, 'usr/share/doc', name, 'copyright');
  if (!existsSync(copyright)) return;
  mkdirSync(join(root, 'usr/share/licenses'), { recursive: true });
  copyFileSync(copyright, join(root, 'usr/share/licenses', name));
}
