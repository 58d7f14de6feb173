// Packages that only the tests need. `npm ci` does not install them: they are larger than all others together.
// `test/packages` names them, with a lock file of its own. They are installed into `.cache/test-packages` once, and
// linked into `node_modules`, where tests and the type checker find them. As a program it does the same.
// Plain JavaScript, because it runs before the right Node is found.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmCommand } from '../bin/working-node.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const NAMED = join(ROOT, 'test', 'packages');
const CACHE = join(ROOT, '.cache', 'test-packages');
const MODULES = join(ROOT, 'node_modules');
const DOWNLOAD_MS = 900_000;

/** Each lock file has a folder of its own, so a run keeps what it has loaded when another one comes. */
const DIGEST = createHash('sha256')
  .update(readFileSync(join(NAMED, 'package-lock.json')))
  .digest('hex')
  .slice(0, 16);
const FOLDER = join(CACHE, DIGEST);

export const TEST_MODULES = join(FOLDER, 'node_modules');

/** Described in test-packages.d.mts. */
export function installTestPackages(say) {
  if (!existsSync(FOLDER)) {
    say('The packages that only the tests need are installed into .cache/test-packages, once (0.9 GB)');
    download();
    for (const name of readdirSync(CACHE))
      if (name !== DIGEST && !name.startsWith('download-')) rmSync(join(CACHE, name), { recursive: true, force: true });
  }
  const { dependencies } = JSON.parse(readFileSync(join(NAMED, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    link(join(MODULES, name), join(TEST_MODULES, name));
    for (const bin of programsOf(name)) link(join(MODULES, '.bin', bin), join(TEST_MODULES, '.bin', bin));
  }
}

/** The names of a package's programs, which npm links in `.bin`. */
function programsOf(name) {
  const { bin = {} } = JSON.parse(readFileSync(join(TEST_MODULES, name, 'package.json'), 'utf8'));
  return typeof bin === 'string' ? [name.replace(/^@[^/]+\//, '')] : Object.keys(bin);
}

/** Installs into a folder beside, which then takes its place. */
function download() {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'download-'));
  try {
    cpSync(NAMED, work, { recursive: true });
    const npm = npmCommand();
    const args = [...npm.args, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', work];
    const options = { cwd: work, encoding: 'utf8', timeout: DOWNLOAD_MS, env: npm.env };
    const { status, stderr, error } = spawnSync(npm.file, args, options);
    if (status !== 0)
      throw new Error(`The packages of test/packages cannot be installed: ${error?.message ?? stderr.trim()}`);
    renameSync(work, FOLDER);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(FOLDER)) throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Makes `path` a link to `target`. What else is there is replaced: it is the package of an older checkout. */
function link(path, target) {
  const wanted = relative(dirname(path), target);
  if (linkAt(path) === wanted) return;
  const fresh = `${path}-${process.pid}`;
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(wanted, fresh);
  // A link takes the place of another one, but not that of a folder.
  if (linkAt(path) === null) rmSync(path, { recursive: true, force: true });
  renameSync(fresh, path);
}

/** The target of the link at `path`. null if there is no link. */
function linkAt(path) {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (['ENOENT', 'EINVAL'].includes(error.code)) return null;
    throw error;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    installTestPackages((line) => process.stderr.write(`${line}\n`));
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
