import { spawn } from 'node:child_process';
import { Client } from 'pg';
import { databaseName } from '../database-name.ts';
import { BackupError } from './archive.ts';
import { MEDIA_HOLDERS, STORED_FILES, type MediaRows } from './copy-files.ts';

export type ProgramEnvironment = Readonly<Record<string, string | undefined>>;

/** Counts tables, sequences and views that users created. */
const COUNT_TABLES =
  "SELECT count(*)::int AS count FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','p','v','m','S') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'";
const APPLIED = 'SELECT name FROM migrations ORDER BY name';

interface Moment {
  readonly migrations: readonly string[];
  readonly media: MediaRows;
}

/**
 * Reads the facts about a database. If `file` is given, also dumps the database into it with `pg_dump`, in the same
 * snapshot. Gateways continue meanwhile.
 */
export async function dumpPostgres(url: string, file: string | null, env: ProgramEnvironment): Promise<Moment> {
  return withClient(url, async (client) => {
    // The snapshot lasts as long as the transaction that exported it.
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const applied = await client.query<{ name: string }>(APPLIED);
    const files = await client.query<MediaRows['files'][number]>(STORED_FILES);
    const holders = await client.query<MediaRows['holders'][number]>(MEDIA_HOLDERS);
    if (file !== null) {
      const exported = await client.query<{ id: string }>('SELECT pg_export_snapshot() AS id');
      const args = ['--format=custom', `--snapshot=${exported.rows[0]!.id}`, `--file=${file}`];
      await run('pg_dump', args, url, env);
    }
    return {
      migrations: applied.rows.map(({ name }) => name),
      media: { files: files.rows, holders: holders.rows },
    };
  });
}

/** Throws BackupError if the database has tables. */
export async function refuseTables(url: string): Promise<void> {
  const count = await withClient(url, async (client) => {
    const { rows } = await client.query<{ count: number }>(COUNT_TABLES);
    return rows[0]!.count;
  });
  if (count > 0)
    throw new BackupError(
      `The database ${databaseName(url)} is not empty: it has ${count} tables. A backup is restored into an empty one.\n` +
        `Make one (createdb), and name it in DATABASE_URL.`,
    );
}

/** Restores a dump of `pg_dump` into an empty database, all or nothing. */
export async function restorePostgres(url: string, file: string, env: ProgramEnvironment): Promise<void> {
  await run('pg_restore', ['--single-transaction', '--exit-on-error', file], url, env);
}

async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // If the connection ends while pg_dump works, the next query reports it.
  client.on('error', () => {});
  try {
    await client.connect();
    return await use(client);
  } catch (error) {
    if (error instanceof BackupError) throw error;
    throw new BackupError(`The database ${databaseName(url)} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * Runs a program of PostgreSQL. The password is passed in the environment, because process lists do not show the
 * environment.
 */
function run(program: string, args: readonly string[], url: string, env: ProgramEnvironment): Promise<void> {
  const password = decodeURIComponent(new URL(url).password);
  const child = spawn(program, ['--no-owner', '--no-privileges', '--dbname', withoutPassword(url), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...env, ...(password === '' ? {} : { PGPASSWORD: password }) },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = `${stderr}${text}`.slice(-2_000)));
  return new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(
        new BackupError(
          `${program} cannot be run (${(error as NodeJS.ErrnoException).code}). It is part of PostgreSQL's client programs, of the server's version or newer (Debian: postgresql-client).`,
          { cause: error },
        ),
      ),
    );
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new BackupError(`${program} failed:\n${stderr.trim()}`));
    });
  });
}

function withoutPassword(url: string): string {
  const bare = new URL(url);
  bare.password = '';
  return bare.href;
}
