import { DatabaseError } from './database.ts';
import type { PostgresDatabase } from './postgres.ts';
import { openSqlite, type SqliteDatabase } from './sqlite.ts';

export type OpenDatabase = SqliteDatabase | PostgresDatabase;

/**
 * Opens the database, with its schema brought up to date: PostgreSQL when `url` is given (`postgres://…`), else the
 * embedded one in `dataDir`. Throws DatabaseError whose message says what to do: the directory is in use
 * (`in_use`), cannot be used (`unusable`), the log of its ledger is gone (`log_gone`), the server is unreachable.
 * `withoutLog` begins a new log where the log is gone.
 */
export async function openDatabase(options: {
  readonly url?: string | null | undefined;
  readonly dataDir: string;
  readonly withoutLog?: boolean;
}): Promise<OpenDatabase> {
  const { url, dataDir, withoutLog = false } = options;
  if (!url) return openSqlite(dataDir, { withoutLog });
  // Imported when wanted: the embedded engine starts without the driver of the other.
  if (/^postgres(ql)?:\/\//.test(url)) return (await import('./postgres.ts')).openPostgres(url);
  throw new DatabaseError(
    `DATABASE_URL must begin with postgres:// or postgresql://; without it the embedded database in ${dataDir} is used`,
    {
      code: 'unusable',
    },
  );
}
