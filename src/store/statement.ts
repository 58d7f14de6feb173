import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Statement } from './database.ts';

const SOURCE = new URL('../', import.meta.url).href;

/**
 * Reads one SQL file beside a module, once, when that module is imported: `loadStatement(import.meta.url,
 * './sql/find-lock.sql')`. The name is the file's path below `src`, so that equal file names of two rooms stay
 * apart where engines prepare by name.
 */
export function loadStatement(moduleUrl: string, path: string): Statement {
  const url = new URL(path, moduleUrl);
  const name = (url.href.startsWith(SOURCE) ? url.href.slice(SOURCE.length) : path).replace(/\.sql$/, '');
  return { name, text: readFileSync(fileURLToPath(url), 'utf8').trim() };
}
