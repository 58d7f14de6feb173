import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';

/** A relative module path such as `'./money.ts'`, in imports, in `import()`, and in `new URL()` of workers. */
const SPECIFIER = /(['"])(\.{1,2}\/[^'"\n]*)\.ts\1/g;

/**
 * Copies a folder of sources for a package. Node doesn't strip types below `node_modules`. So each `.ts` file becomes
 * the `.js` file that Node would have run: types are replaced by spaces, so lines and columns stay the same. Other
 * files (SQL, Lua) are copied unchanged. Returns the number of written files.
 */
export function stripSources(from: string, to: string): number {
  let written = 0;
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const source = join(entry.parentPath, entry.name);
    const path = source.slice(from.length + 1);
    if (!entry.isFile()) continue;
    const target = join(to, path);
    mkdirSync(dirname(target), { recursive: true });
    if (path.endsWith('.ts')) writeFileSync(target.replace(/\.ts$/, '.js'), stripped(readFileSync(source, 'utf8')));
    else cpSync(source, target);
    written += 1;
  }
  return written;
}

/** Turns one TypeScript source into the JavaScript of a package. */
export const stripped = (source: string): string => blanked(source).replaceAll(SPECIFIER, '$1$2.js$1');

/** Removes the types of a source. Module paths still end in `.ts`. */
export function blanked(source: string): string {
  const lines = stripTypeScriptTypes(source, { mode: 'strip' }).split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}
