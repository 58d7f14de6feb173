import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the built pages, or a sentence that says why it is missing. */
type Built = { readonly folder: string } | { readonly reason: string };

/** The folders of a checkout or of a package. */
interface WebPlaces {
  /** The root of the checkout. */
  readonly root: string;
  /** Aborting it kills a running build. */
  readonly signal: AbortSignal;
}

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Its hash counts too, because the built pages depend on the installed packages. */
const LOCK_FILE = 'package-lock.json';

/**
 * Finds the built pages. In a checkout they are built in a child process when `web/` has changed, and cached in
 * `.cache/web` by the hash of their sources. Packages contain them in `dist/web`.
 */
export async function findBuilt({ root, signal }: WebPlaces): Promise<Built> {
  const canBuild = (await exists(join(root, 'web/build.mjs'))) && (await exists(join(root, 'node_modules/vite')));
  if (!canBuild) {
    const folder = join(root, 'dist/web');
    return (await exists(join(folder, 'index.html'))) ? { folder } : { reason: NOT_INSTALLED };
  }
  try {
    return { folder: await builtInCheckout(root, signal) };
  } catch (error) {
    return { reason: `The web pages could not be built: ${(error as Error).message}` };
  }
}

async function builtInCheckout(root: string, signal: AbortSignal): Promise<string> {
  const cache = join(root, '.cache/web');
  const folder = join(cache, await hashOf(root));
  if (await exists(join(folder, 'index.html'))) return folder;
  // Several gateways may build at the same time. Each builds into its own folder, and the first one to finish moves its
  // folder into place.
  const work = `${folder}.${process.pid}.${randomUUID()}`;
  try {
    await mkdir(cache, { recursive: true });
    await build(root, work, signal);
    await rename(work, folder).catch(async (error: unknown) => {
      if (!(await exists(join(folder, 'index.html')))) throw error;
    });
    return folder;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const NOT_INSTALLED =
  'The web pages are not built, and what builds them is not installed. Run "npm ci" without --omit=dev, or take a package that has dist/web. The API works without them: see /docs';

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function hashOf(root: string): Promise<string> {
  const web = join(root, 'web');
  const entries = await readdir(web, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const paths = [...files.toSorted(), join(root, LOCK_FILE)];
  const contents = await Promise.all(paths.map((path) => readFile(path).catch(() => Buffer.alloc(0))));
  const hash = createHash('sha256');
  for (const [index, path] of paths.entries()) {
    const content = contents[index]!;
    hash.update(`${path.slice(root.length)}\0${content.byteLength}\0`).update(content);
  }
  return hash.digest('hex').slice(0, 20);
}

const OUTPUT_MAX = 4_000;

function build(root: string, folder: string, signal: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [join(root, 'web/build.mjs'), folder], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-OUTPUT_MAX)));
    child.on('error', fail);
    child.on('close', (code) => (code === 0 ? done() : fail(new Error(said.trim() || `the build ended with ${code}`))));
  });
}
