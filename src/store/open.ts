import { DatabaseError } from './database.ts';
import type { PostgresDatabase } from './postgres.ts';
import { openSqlite, type SqliteDatabase } from './sqlite.ts';

export type OpenDatabase = SqliteDatabase | PostgresDatabase;

/**
 * Opens the database and migrates its schema: PostgreSQL if `url` is given (`postgres://…`), else the embedded database
 * in `dataDir`. Throws DatabaseError, whose message says what to do: the directory is in use (`in_use`) or cannot be
 * used (`unusable`), the log of its ledger is missing (`log_gone`), or the server is unreachable. `withoutLog` begins a
 * new log if the log is missing.
 */
export async function openDatabase(options: {
  readonly url?: string | null | undefined;
  readonly dataDir: string;
  readonly withoutLog?: boolean;
}): Promise<OpenDatabase> {
  const { url, dataDir, withoutLog = false } = options;
  if (!url) return openSqlite(dataDir, { withoutLog });
  // Imported on demand, so that the embedded engine starts without PostgreSQL's driver.
  if (/^postgres(ql)?:\/\//.test(url)) return (await import('./postgres.ts')).openPostgres(url);
  throw new DatabaseError(
    `DATABASE_URL must begin with postgres:// or postgresql://; without it the embedded database in ${dataDir} is used`,
    {
      code: 'unusable',
    },
  );
}
