// Builds the pages into a folder: `node web/build.mjs <folder>`. The gateway runs this in a child process.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { build } from 'vite';

const folder = resolve(process.argv[2] ?? 'dist/web');
process.env.NODE_ENV = 'production';
await build({
  configFile: resolve(import.meta.dirname, 'vite.config.ts'),
  configLoader: 'native',
  logLevel: 'error',
  build: { outDir: folder },
});
pack();

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
