import { readdir, readFile } from 'node:fs/promises';
import { extname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { tagOf } from '#gateway';

/** A built file in memory. */
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
  /** The document template of every page. */
  readonly document: string;
  /** Returns the additional scripts that the page in a folder of `web/src/pages/` needs. */
  scriptsOf(page: string): readonly string[];
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

/** Reads all files of a build. */
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
  return {
    document,
    files,
    firstPaint,
    packed: pack(files),
    scriptsOf: (page) =>
      [...chunksOf(manifest, `src/pages/${page}/page.tsx`)]
        .map((file) => `/${file}`)
        .filter((path) => !document.includes(path)),
  };
}

/** The name of this chunk in `web/vite.config.ts`. */
const FIRST_PAINT = 'first-paint';

/** Reads a compressed file that the build wrote beside a file. */
const besides = (file: string, extension: string): Promise<Buffer | null> =>
  readFile(`${file}.${extension}`).catch(() => null);

/** Vite's list of chunks, with the chunks that each one imports. */
type Manifest = Readonly<
  Record<string, { readonly file: string; readonly name?: string; readonly imports?: readonly string[] }>
>;

function chunksOf(manifest: Manifest, name: string, found = new Set<string>()): ReadonlySet<string> {
  const chunk = manifest[name];
  if (!chunk || found.has(chunk.file)) return found;
  found.add(chunk.file);
  for (const each of chunk.imports ?? []) chunksOf(manifest, each, found);
  return found;
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
