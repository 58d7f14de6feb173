// Finds a Node that can run tollgate's sources, for a checkout. Plain JavaScript that Node 20 can run. As a program it
// does the same, so that `node` in node_modules/.bin works afterwards.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Since this version Node runs TypeScript without a build and includes node:sqlite. */
export const NODE_MAJOR_MIN = 24;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PACKAGE = fileURLToPath(new URL('node-24', import.meta.url));
const BIN = join(ROOT, 'node_modules', '.bin');
const BUNDLED = join(BIN, 'node');
const BROUGHT = join(ROOT, '.cache', 'node-24');
const DOWNLOAD_MS = 600_000;
const NO_GLIBC = 'it needs glibc, the C library of most Linux distributions';

/**
 * Finds a Node that is new enough and starts here: the one that `npm ci` installed, else the running one, else Node 24,
 * which is downloaded into `.cache` once. Returns `{ file, version }`, or null if `npm ci` installed none and the
 * running one is too old. Throws an Error with advice if the installed one does not start and no other can be had.
 */
export function findWorkingNode() {
  const own = { file: process.execPath, version: process.version };
  const ownIsNew = majorOf(own.version) >= NODE_MAJOR_MIN;
  if (lstatSync(BUNDLED, { throwIfNoEntry: false }) === undefined) return ownIsNew ? own : null;
  const bundled = tryNode(BUNDLED);
  if (bundled.version !== undefined) return { file: BUNDLED, version: bundled.version };
  try {
    if (ownIsNew) {
      link(own.file);
      return own;
    }
    return { file: BUNDLED, version: bringNode(bundled.wrong) };
  } catch (error) {
    throw new Error(`${whyNot(bundled.wrong)}\n${error.message}\n${advice(bundled.wrong)}`, { cause: error });
  }
}

/** Starts a Node once. Returns its `version`, or what is `wrong`. */
function tryNode(file) {
  const { status, stdout, stderr, error } = spawnSync(file, ['--version'], { encoding: 'utf8' });
  // The file is there, but what loads it is not.
  if (error?.code === 'ENOENT' && existsSync(file)) return { wrong: NO_GLIBC };
  const version = stdout?.trim() ?? '';
  if (status === 0 && majorOf(version) >= NODE_MAJOR_MIN) return { version };
  if (status === 0) return { wrong: `it is Node ${version}` };
  return { wrong: error?.message ?? (stderr.trim() || `it ended with code ${status}`) };
}

/** Links `node` of node_modules/.bin to a Node 24, and returns its version. */
function bringNode(wrong) {
  if (process.platform !== 'linux' || wrong === NO_GLIBC) throw new Error('There is no package of another one for it.');
  const file = join(BROUGHT, 'node_modules', '.bin', 'node');
  if (tryNode(file).version === undefined) {
    process.stderr.write(`${whyNot(wrong)}\nSo Node 24 is downloaded into .cache/node-24 (once, 55 MB).\n`);
    download();
  }
  const { version, wrong: alsoWrong } = tryNode(file);
  if (version === undefined) throw new Error(`Node 24, which was downloaded instead, does not start either: ${alsoWrong}`);
  link(file);
  return version;
}

/**
 * Installs the package into a folder beside, which then takes its place. So processes that do this at the same time
 * do not disturb each other.
 */
function download() {
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const work = mkdtempSync(`${BROUGHT}-download-`);
  try {
    cpSync(PACKAGE, work, { recursive: true });
    const npm = npmCommand();
    const args = [...npm.args, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', work];
    const options = { cwd: work, encoding: 'utf8', timeout: DOWNLOAD_MS, env: npm.env };
    const { status, stderr, error } = spawnSync(npm.file, args, options);
    if (status !== 0) throw new Error(`Node 24 could not be downloaded instead: ${error?.message ?? stderr.trim()}`);
    rmSync(BROUGHT, { recursive: true, force: true });
    renameSync(work, BROUGHT);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** npm is a script whose first line finds `node` on PATH, where the one that does not start may come first. */
function npmCommand() {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.endsWith('node_modules/.bin'));
  const env = { ...process.env, PATH: path.join(delimiter) };
  const script = process.env.npm_execpath;
  return script ? { file: process.execPath, args: [script], env } : { file: 'npm', args: [], env };
}

function link(file) {
  const fresh = `${BUNDLED}-${process.pid}`;
  symlinkSync(file.startsWith(ROOT) ? relative(BIN, file) : file, fresh);
  renameSync(fresh, BUNDLED);
}

function majorOf(version) {
  return Number.parseInt(version.replace(/^v/, ''), 10);
}

function whyNot(wrong) {
  return `The Node that "npm ci" installed does not start on this machine: ${wrong}`;
}

function advice(wrong) {
  const library = /([\w.+-]+\.so[\w.]*): cannot open shared object/.exec(wrong)?.[1];
  if (library === 'libatomic.so.1')
    return 'Install the library: "apt-get install libatomic1" on Debian and Ubuntu, "dnf install libatomic" on Fedora. Then run this again.';
  return `${library ? `Install the library ${library}, or` : 'Install'} Node ${NODE_MAJOR_MIN} or newer: https://nodejs.org/en/download. Then run this again.`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    findWorkingNode();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
