import { readdir, readFile, access, mkdir, rename, rm } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { tagOf } from '#http';

export interface PageFile {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  /**
   * Compressed by the build, or soon after the files were read. null until then, and if compression doesn't make the
   * file smaller.
   */
  gzip: Buffer | null;
  brotli: Buffer | null;
}

/** The built pages in memory: no request reads the disk. */
export interface PageFiles {
  readonly document: string;
  /** Returns the additional scripts that the page in a folder of `web/src/pages/` needs. */
  scriptsOf(page: string): readonly string[];
  /** The module with the search of the guide. null if the build has none. */
  readonly search: string | null;
  /**
   * The script that draws the top of a service's page before the other scripts are loaded. null if the build has none.
   */
  readonly firstPaint: string | null;
  /** Files by path, such as `/assets/index-x.js`. */
  readonly files: ReadonlyMap<string, PageFile>;
  /** Resolves when all files are compressed. Until then they are sent uncompressed. */
  readonly packed: Promise<void>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};
const PACKED = new Set(['.js', '.css', '.svg']);

export async function readPages(folder: string): Promise<PageFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = new Map<string, PageFile>();
  for (const entry of entries) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const full = join(entry.parentPath, entry.name);
    const bytes = await readFile(full);
    const path = full.slice(folder.length).split(sep).join('/');
    const [gzip, brotli] = await Promise.all([besides(full, 'gz'), besides(full, 'br')]);
    files.set(path, { bytes, type, etag: tagOf(bytes), gzip, brotli });
  }
  const document = await readFile(join(folder, 'index.html'), 'utf8');
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as Manifest;
  const [firstPaint = null] = Object.values(manifest).flatMap(({ name, file }) =>
    name === FIRST_PAINT ? [`/${file}`] : [],
  );
  const search = manifest['src/search/guide.ts']?.file;
  return {
    document,
    files,
    firstPaint,
    search: search === undefined ? null : `/${search}`,
    packed: pack(files),
    scriptsOf: (page) =>
      [...chunksOf(manifest, `src/pages/${page}/page.tsx`)]
        .map((file) => `/${file}`)
        .filter((path) => !document.includes(path)),
  };
}

/** The name of this chunk in `web/vite.config.ts`. */
const FIRST_PAINT = 'first-paint';

const besides = (file: string, extension: string): Promise<Buffer | null> =>
  readFile(`${file}.${extension}`).catch(() => null);

/** Vite's list of chunks, with the chunks that each one imports. */
type Manifest = Readonly<
  Record<string, { readonly file: string; readonly name?: string; readonly imports?: readonly string[] }>
>;

function chunksOf(manifest: Manifest, name: string, files = new Set<string>()): ReadonlySet<string> {
  const chunk = manifest[name];
  if (!chunk || files.has(chunk.file)) return files;
  files.add(chunk.file);
  for (const each of chunk.imports ?? []) chunksOf(manifest, each, files);
  return files;
}

/**
 * Compresses the files, unless the build did it. gzip runs first for all files because it is quick, so that even early
 * visitors get compressed files.
 */
async function pack(files: ReadonlyMap<string, PageFile>): Promise<void> {
  if ([...files.values()].some(({ brotli }) => brotli !== null)) return;
  const texts = [...files].filter(([path]) => PACKED.has(extname(path))).map(([, file]) => file);
  for (const file of texts) file.gzip = smaller(await promisify(gzip)(file.bytes), file);
  for (const file of texts) {
    const params = { [constants.BROTLI_PARAM_SIZE_HINT]: file.bytes.byteLength };
    file.brotli = smaller(await promisify(brotliCompress)(file.bytes, { params }), file);
  }
}

const smaller = (packed: Buffer, { bytes }: PageFile): Buffer | null =>
  packed.byteLength < bytes.byteLength ? packed : null;

/** The folder of the built pages, or a sentence that says why it is missing. */
type Built =
  | {
      readonly folder: string;
      /** A sentence, if these are not the pages of the sources in the checkout. */
      readonly older?: string;
    }
  | { readonly reason: string };

interface WebPlaces {
  readonly root: string;
  readonly signal: AbortSignal;
}

export const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** The built pages of a package, and those that are committed with their sources. */
const BROUGHT = 'dist/web';
/** The file in a committed build with the hash of its sources. */
export const SOURCES_FILE = 'sources.txt';

/**
 * Finds the built pages. A package contains them in `dist/web`. A checkout does so too, without compressed copies. It
 * caches the pages with these copies in `.cache/web`: the committed ones, or if `web/` has other sources, those that a
 * child process builds. If what builds them is not installed, it takes the committed ones.
 */
export async function findBuilt({ root, signal }: WebPlaces): Promise<Built> {
  const brought = join(root, BROUGHT);
  const hasBrought = await exists(join(brought, 'index.html'));
  const isCheckout = await exists(join(root, 'web/build.mjs'));
  if (!isCheckout) return hasBrought ? { folder: brought } : { reason: NOT_INSTALLED };
  const sources = await hashOfSources(root);
  const isFresh = hasBrought && (await readFile(join(brought, SOURCES_FILE), 'utf8').catch(() => '')) === sources;
  if (!isFresh && !(await exists(join(root, 'node_modules/vite'))))
    return hasBrought ? { folder: brought, older: OLDER } : { reason: NOT_INSTALLED };
  // The built files have hashes in their names, which these two contain. A build also depends on the packages.
  const parts = isFresh ? ['dist/web/index.html', 'dist/web/manifest.json'] : ['package-lock.json'];
  try {
    const key = await hashOf(
      root,
      parts.map((part) => join(root, part)),
      sources,
    );
    return { folder: await cachedIn(root, key, isFresh ? [brought] : [], signal) };
  } catch (error) {
    // The cache may be on a disk that is read-only or full.
    return isFresh ? { folder: brought } : { reason: `The web pages could not be built: ${(error as Error).message}` };
  }
}

/** The folder of the pages in the cache. `copied`: the build that is copied. Without it, the pages are built. */
async function cachedIn(root: string, key: string, copied: readonly string[], signal: AbortSignal): Promise<string> {
  const cache = join(root, '.cache/web');
  const folder = join(cache, key.slice(0, 20));
  if (await exists(join(folder, 'index.html'))) return folder;
  // Several gateways may build at the same time. Each builds into its own folder, and the first one to finish moves its
  // folder into place.
  const work = `${folder}.${process.pid}.${randomUUID()}`;
  try {
    await mkdir(cache, { recursive: true });
    await build(root, [work, ...copied], signal);
    await rename(work, folder).catch(async (error: unknown) => {
      if (!(await exists(join(folder, 'index.html')))) throw error;
    });
    return folder;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const NOT_INSTALLED =
  'The web pages are not built, and what builds them is not installed. Run "npm ci" without --omit=dev, or take a package that has dist/web. The API works without them: see /openapi.json';
const OLDER =
  'The web pages are those of dist/web, which are older than web/: what builds them is not installed. Run "npm ci" without --omit=dev';

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** The hash of all files of `web/`. Files that an editor or a system leaves there do not count. */
export async function hashOfSources(root: string): Promise<string> {
  const web = join(root, 'web');
  const entries = await readdir(web, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  return hashOf(web, files.map((entry) => join(entry.parentPath, entry.name)).toSorted(), '');
}

/** The hash of files with their paths below `folder`, and of a text. A file that is missing counts as an empty one. */
async function hashOf(folder: string, paths: readonly string[], text: string): Promise<string> {
  const contents = await Promise.all(paths.map((path) => readFile(path).catch(() => Buffer.alloc(0))));
  const hash = createHash('sha256').update(text);
  for (const [index, path] of paths.entries()) {
    const content = contents[index]!;
    hash.update(`${relative(folder, path)}\0${content.byteLength}\0`).update(content);
  }
  return hash.digest('hex');
}

const OUTPUT_MAX = 4_000;

function build(root: string, args: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [join(root, 'web/build.mjs'), ...args], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-OUTPUT_MAX)));
    child.on('error', fail);
    child.on('close', (code) =>
      code === 0 ? done() : fail(new Error(output.trim() || `the build ended with ${code}`)),
    );
  });
}

/**
 * Only scripts and styles of this host are allowed. Scripts can't turn text into markup, because no policy of Trusted
 * Types exists. This protects against texts of providers.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
  "font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'";

const HSTS_S = 31_536_000;

/** The headers of every web page and its files. If `publicUrl` is https, browsers are told to use only TLS. */
export function pageHeaders(publicUrl: string | null): Readonly<Record<string, string>> {
  return {
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    // Wallet extensions open popup windows.
    'cross-origin-opener-policy': 'same-origin-allow-popups',
    'cross-origin-resource-policy': 'same-origin',
    'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
    ...(publicUrl?.startsWith('https:') ? { 'strict-transport-security': `max-age=${HSTS_S}` } : {}),
  };
}
