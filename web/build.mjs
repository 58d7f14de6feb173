// Builds the pages into a folder: `node web/build.mjs <folder>`. The gateway runs this in a process of its own.
import { resolve } from 'node:path';
import { build } from 'vite';

process.env.NODE_ENV = 'production';
await build({
  configFile: resolve(import.meta.dirname, 'vite.config.ts'),
  configLoader: 'native',
  logLevel: 'error',
  build: { outDir: resolve(process.argv[2] ?? 'dist/web') },
});
