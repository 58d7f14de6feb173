// Builds the web pages into `dist/web`, which is committed: a checkout serves them without what builds them. Part of
// `npm run docs`, after the types of the pages.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashOfSources, ROOT, SOURCES_FILE } from '../src/console/pages/web/page-files.ts';

export const COMMITTED = join(ROOT, 'dist/web');

/** Builds the pages into a folder as they are committed. */
export async function writePages(folder: string): Promise<void> {
  execFileSync(process.execPath, [join(ROOT, 'web/build.mjs'), folder, '--plain'], { cwd: ROOT, stdio: 'inherit' });
  writeFileSync(join(folder, SOURCES_FILE), await hashOfSources(ROOT));
}

if (import.meta.main) await writePages(COMMITTED);
