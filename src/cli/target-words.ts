import { painter } from './terminal.ts';

/** Tells people on standard error where a command acts. Standard output is for the result. */
export function say(text: string): void {
  process.stderr.write(`${painter(process.stderr)('dim', text)}\n`);
}

/** A database and the data directory beside it. `name` is that of `databaseName`. */
export function onDatabase(name: string, dataDir: string): string {
  return name === 'embedded'
    ? `on the embedded database in ${dataDir}`
    : `on PostgreSQL ${name}, data directory ${dataDir}`;
}
