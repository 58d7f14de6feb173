import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseError } from './database.ts';

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

/** The table of applied migrations, which both engines create before they read it. */
export const MIGRATIONS_TABLE =
  'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)';

/**
 * The migrations that are left to apply, in order. Throws DatabaseError `newer` where an unknown one was applied: the
 * schema is of a newer tollgate.
 */
export function missingMigrations(known: readonly Migration[], applied: ReadonlySet<string>): readonly Migration[] {
  const names = new Set(known.map(({ name }) => name));
  const unknown = [...applied].filter((name) => !names.has(name)).sort();
  if (unknown.length === 0) return known.filter(({ name }) => !applied.has(name));
  throw new DatabaseError(
    `a newer tollgate has changed it, with ${unknown.join(', ')}; this one knows the migrations up to ${known.at(-1)?.name ?? 'none'}. ` +
      `Run the newer version, or restore a backup from before the upgrade`,
    { code: 'newer' },
  );
}
