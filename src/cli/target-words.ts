import { painter } from './terminal.ts';

/** Tells people on standard error what a command acts on. Standard output is for the result. */
export function say(text: string): void {
  process.stderr.write(`${painter(process.stderr)('dim', text)}\n`);
}

/** Words for a database and its data directory. `name` is that of `databaseName`. */
export function onDatabase(name: string, dataDir: string): string {
  return name === 'embedded'
    ? `on the embedded database in ${dataDir}`
    : `on PostgreSQL ${name}, data directory ${dataDir}`;
}
