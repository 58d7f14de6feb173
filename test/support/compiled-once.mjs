// Runs the script of its first argument, with the arguments after it, and keeps its compiled code for the next process:
// half of what a small tool server takes is the compiling of its sources.
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/tollgate'));
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1]).href);
