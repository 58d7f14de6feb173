import { join } from 'node:path';

/** First argument of Node, before that of a script: keeps the compiled code of the script for its next process. */
export const COMPILED_ONCE = join(import.meta.dirname, 'compiled-once.mjs');
