import { readdirSync, readFileSync } from 'node:fs';

export interface Migration {
  readonly name: string;
  readonly text: string;
}

/** Every numbered file of the migrations folder, in order: the history of the schema, forward only. */
export function loadMigrations(folder: URL = new URL('./migrations/', import.meta.url)): readonly Migration[] {
  return readdirSync(folder)
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .sort()
    .map((file) => ({ name: file.replace(/\.sql$/, ''), text: readFileSync(new URL(file, folder), 'utf8') }));
}

/** The table of applied migrations, which both engines create before they ask what is missing. */
export const MIGRATIONS_TABLE = 'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)';
