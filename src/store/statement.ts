import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Statement } from './database.ts';

const SOURCE = new URL('../', import.meta.url).href;

/**
 * Reads an SQL file once, when the calling module is imported: `loadStatement(import.meta.url, './sql/find-lock.sql')`.
 * The name of the statement is the file's path below `src`. So files with the same name in two rooms do not collide in
 * the engines' caches of prepared statements.
 */
export function loadStatement(moduleUrl: string, path: string): Statement {
  const url = new URL(path, moduleUrl);
  const name = (url.href.startsWith(SOURCE) ? url.href.slice(SOURCE.length) : path).replace(/\.sql$/, '');
  return { name, text: readFileSync(fileURLToPath(url), 'utf8').trim() };
}
