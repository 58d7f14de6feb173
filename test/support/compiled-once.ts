import { join } from 'node:path';

/**
 * The first argument of Node, before the path of a script. It caches the script's compiled code for the next process.
 */
export const COMPILED_ONCE = join(import.meta.dirname, 'compiled-once.mjs');
