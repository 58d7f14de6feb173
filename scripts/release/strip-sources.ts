import { stripTypeScriptTypes } from 'node:module';

/** A relative module path such as `'./money.ts'`, in imports, in `import()`, and in `new URL()` of workers. */
const SPECIFIER = /(['"])(\.{1,2}\/[^'"\n]*)\.ts\1/g;

/**
 * Turns one TypeScript source into the JavaScript of a package, because Node doesn't strip types below `node_modules`.
 * Types are replaced by spaces, so lines and columns stay the same.
 */
export const stripped = (source: string): string => blanked(source).replaceAll(SPECIFIER, '$1$2.js$1');

/** Removes the types of a source. Module paths still end in `.ts`. */
export function blanked(source: string): string {
  const lines = stripTypeScriptTypes(source, { mode: 'strip' }).split('\n');
  return lines.map((line) => line.trimEnd()).join('\n');
}
