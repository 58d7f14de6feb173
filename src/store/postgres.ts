import { Pool, types, type Client, type PoolClient, type QueryConfig } from 'pg';
import {
  DatabaseError,
  type Database,
  type Query,
  type Row,
  type Statement,
  type Step,
  type Value,
} from './database.ts';
import {
  APPLIED_MIGRATIONS,
  type AppliedMigration,
  loadMigrations,
  MIGRATED_BY_TABLE,
  MIGRATIONS_TABLE,
  missingMigrations,
} from './migrations.ts';
import { toDatabaseError } from './postgres-error.ts';
import { openSession, type PostgresSession } from './postgres-session.ts';
import { VERSION } from '../version.ts';

export interface PostgresDatabase extends Database {
  readonly engine: 'postgres';
  /** A connection of one's own, for a writer that keeps one transaction after the other in flight. */
  session(setup: readonly Statement[]): Promise<PostgresSession>;
}

const INT8 = 20;
const INT4 = 23;
const INT2 = 21;

/** Integers of every width come back as bigint, as on the embedded engine. */
export const TYPES = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 || oid === INT4 || oid === INT2
      ? BigInt
      : (types.getTypeParser(oid, format) as unknown)) as typeof types.getTypeParser,
};

const CONNECTIONS = 10;
/** The code of a prepared statement whose table got a column meanwhile, by the migration of a newer gateway. */
const STALE_PLAN = '0A000';
/** Codes of a transaction that the server gave up, because it was in the way of others: deadlock, serialization. */
const IN_THE_WAY: ReadonlySet<string> = new Set(['40P01', '40001']);
const CONNECT_MS = 3_000;
/**
 * A server that does not answer for so long is taken for gone. An operator can say otherwise:
 * `postgres://…?query_timeout=30000`.
 */
const QUERY_MS = 10_000;
/** Migrations and audits read or write whole tables. */
const LONG_MS = 3_600_000;

/** Any number does, as long as every gateway takes the same one: they migrate one after the other. */
const MIGRATION_LOCK = 402_402_402;

/**
 * Connects to PostgreSQL and brings its schema up to date. Connections that a restart of the server breaks are
 * replaced; statements that ran on them fail with `unavailable`.
 */
export async function openPostgres(url: string): Promise<PostgresDatabase> {
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    types: TYPES,
  });
  // An idle connection that dies is dropped from the pool; without a listener it would end the process.
  pool.on('error', () => {});
  // Listens from the first moment: a server that stops can say so in the bytes that announce the connection, before
  // the code that waits for it has it.
  pool.on('connect', (client) => client.on('error', noteLoss));

  const withOne = async <T>(run: (client: PoolClient) => Promise<T>): Promise<T> => {
    let client: PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      throw toDatabaseError(error);
    }
    let failure: DatabaseError | undefined;
    try {
      return await run(client);
    } catch (error) {
      failure = error instanceof DatabaseError ? error : toDatabaseError(error);
      throw failure;
    } finally {
      client.release(failure !== undefined && (failure.unavailable || failure.code === STALE_PLAN));
    }
  };

  const withClient = async <T>(run: (client: PoolClient) => Promise<T>): Promise<T> => {
    // Each connection may have a stale plan, and is replaced. What failed has no effect, so that it is done again.
    for (let tries = 0; ; tries += 1) {
      try {
        return await withOne(run);
      } catch (error) {
        const code = error instanceof DatabaseError ? error.code : '';
        if ((code !== STALE_PLAN && !IN_THE_WAY.has(code)) || tries === CONNECTIONS) throw error;
      }
    }
  };

  const transaction = <T>(begin: string, run: (client: PoolClient) => Promise<T>, end = 'COMMIT'): Promise<T> =>
    withClient(async (client) => {
      await client.query(begin);
      try {
        const value = await run(client);
        await client.query(end);
        return value;
      } catch (error) {
        // A connection that failed is thrown away, and its transaction with it.
        if (!toDatabaseError(error).unavailable) await client.query('ROLLBACK').catch(() => {});
        throw error;
      }
    });

  try {
    await transaction('BEGIN', migrate);
  } catch (error) {
    await pool.end();
    const { host, pathname } = new URL(url);
    const cause = toDatabaseError(error);
    throw new DatabaseError(`The database ${host}${pathname} (DATABASE_URL) cannot be used: ${cause.message}`, {
      code: cause.code,
      unavailable: cause.unavailable,
      cause,
    });
  }

  let closing: Promise<void> | undefined;
  return {
    engine: 'postgres',
    query: (statement, params) => withClient((client) => perform(client, { statement, params: params ?? [] })),
    batch: (steps) =>
      transaction('BEGIN', async (client) => {
        const results: (readonly Row[])[] = [];
        for (const step of steps) results.push(await perform(client, step));
        return results;
      }),
    snapshot: (run, temporary = []) =>
      transaction(
        'BEGIN ISOLATION LEVEL REPEATABLE READ',
        async (client) => {
          const query: Query = (statement, params = []) =>
            perform(client, { statement, params }, { query_timeout: LONG_MS });
          for (const statement of temporary) await query(statement);
          await client.query('SET TRANSACTION READ ONLY');
          return run(query, null);
        },
        // With it go the temporary tables.
        'ROLLBACK',
      ),
    session: (setup) =>
      openSession({ connectionString: url, connectionTimeoutMillis: CONNECT_MS, keepAlive: true, types: TYPES }, setup),
    close: () => (closing ??= pool.end()),
  };
}

/** The query that was running reports the loss; this listener only keeps it from ending the process. */
function noteLoss(): void {}

async function perform(
  client: Client,
  { statement, params = [] }: Step,
  limits: { readonly query_timeout?: number } = {},
): Promise<readonly Row[]> {
  const result = await client.query<Record<string, Value>>({
    name: statement.name,
    text: statement.text,
    values: [...params],
    ...limits,
  });
  return result.rows;
}

async function migrate(client: PoolClient): Promise<void> {
  const execute = (text: string) => client.query({ text, query_timeout: LONG_MS } as QueryConfig);
  await execute(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  await execute(MIGRATIONS_TABLE);
  await execute(MIGRATED_BY_TABLE);
  const { rows } = await client.query<AppliedMigration & Record<string, unknown>>(APPLIED_MIGRATIONS);
  for (const { name, text } of missingMigrations(loadMigrations(), rows)) {
    await execute(text);
    await client.query('INSERT INTO migrations (name, applied_at) VALUES ($1, $2)', [name, Date.now()]);
    await client.query('INSERT INTO migrated_by (name, version) VALUES ($1, $2)', [name, VERSION]);
  }
}
