// Runs the script of its first argument with the arguments after it, and caches its compiled code for the next process.
// Compiling is half of the start time of a small tool server.
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/tollgate'));
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]).href);
