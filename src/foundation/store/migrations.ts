import { readdirSync, readFileSync } from 'node:fs';
import { DatabaseError } from './database.ts';
import { VERSION } from '../version.ts';

export interface Migration {
  readonly name: string;
  readonly text: string;
}

/** All numbered files of the migrations folder, in order. Migrations only go forward. */
export function loadMigrations(folder: URL = new URL('./migrations/', import.meta.url)): readonly Migration[] {
  return readdirSync(folder)
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .sort()
    .map((file) => ({ name: file.replace(/\.sql$/, ''), text: readFileSync(new URL(file, folder), 'utf8') }));
}

/**
 * The tables of applied migrations and of the versions that applied them. Both engines create the tables before they
 * read them. They are not migrations, because every version must read them, also in a database of a newer version.
 */
export const MIGRATIONS_TABLE =
  'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)';
export const MIGRATED_BY_TABLE =
  'CREATE TABLE IF NOT EXISTS migrated_by (name TEXT PRIMARY KEY, version TEXT NOT NULL)';

/** An applied migration. `version` is the tollgate version that applied it; null if it was not recorded. */
export interface AppliedMigration {
  readonly name: string;
  readonly version: string | null;
}

/** Returns rows of AppliedMigration. */
export const APPLIED_MIGRATIONS =
  'SELECT m.name AS name, b.version AS version FROM migrations m LEFT JOIN migrated_by b ON b.name = m.name';

/** Applied migrations that a later one has renamed, so that versions which know only the old name cannot start. */
const RENAMED: ReadonlyMap<string, string> = new Map([['0001_ledger (renamed)', '0001_ledger']]);

/** The name of an applied migration's file, from its name in a database or a backup. */
export const fileOfMigration = (applied: string): string => RENAMED.get(applied) ?? applied;

/**
 * The migrations that are not applied yet, in order. Throws DatabaseError `newer` if an unknown migration was applied,
 * because the schema belongs to a newer tollgate.
 */
export function missingMigrations(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  const names = new Set(known.map(({ name }) => name));
  const unknown = applied
    .filter(({ name }) => !names.has(fileOfMigration(name)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  if (unknown.length === 0) {
    const have = new Set(applied.map(({ name }) => fileOfMigration(name)));
    return known.filter(({ name }) => !have.has(name));
  }
  const newest = unknown.findLast(({ version }) => version !== null)?.version;
  const needed = newest ? `tollgate ${newest} or newer` : 'the newer version';
  throw new DatabaseError(
    `a newer tollgate${newest ? `, ${newest},` : ''} has changed it, with ${unknown.map(({ name }) => name).join(', ')}; ` +
      `this is tollgate ${VERSION}, which knows the migrations up to ${known.at(-1)?.name ?? 'none'}. ` +
      `Run ${needed}, or restore a backup from before the upgrade`,
    { code: 'newer' },
  );
}
