// `node web/build.mjs <folder>` builds the pages into a folder, and `node web/build.mjs <folder> <built>` copies built
// pages there. Both add compressed copies, unless `--plain` is given. The gateway runs this in a child process.
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const args = process.argv.slice(2);
const [folder, built] = args.filter((argument) => argument !== '--plain').map((path) => resolve(path));
if (built === undefined) await buildPages();
else cpSync(built, folder, { recursive: true });
if (!args.includes('--plain')) pack();

async function buildPages() {
  // A checkout that only runs a gateway does not have it.
  const { build } = await import('vite');
  process.env.NODE_ENV = 'production';
  await build({
    configFile: resolve(import.meta.dirname, 'vite.config.ts'),
    configLoader: 'native',
    logLevel: 'error',
    build: { outDir: folder },
  });
}

/**
 * Writes a compressed copy beside each text file, if it is smaller. Compressing at every start of the gateway would
 * take a second of CPU.
 */
function pack() {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !['.js', '.css', '.svg'].includes(extname(entry.name))) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    for (const [extension, packed] of [
      ['gz', gzipSync(bytes)],
      ['br', brotliCompressSync(bytes)],
    ])
      if (packed.byteLength < bytes.byteLength) writeFileSync(`${path}.${extension}`, packed);
  }
}
