import { Pool, types, Client, type PoolClient, type QueryConfig, type ClientConfig } from 'pg';
import {
  BUSY,
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
import { createSnapshotPlaces } from './snapshot-places.ts';
import { VERSION } from '../version.ts';

export interface PostgresDatabase extends Database {
  readonly engine: 'postgres';
  /** Opens a dedicated connection, for a writer that runs one transaction after the other. */
  session(setup: readonly Statement[]): Promise<PostgresSession>;
  /** The server's clock, in epoch milliseconds with fractions. */
  clock(): Promise<number>;
}

const INT8 = 20;
const INT4 = 23;
const INT2 = 21;

/** Integers of every width are returned as bigint, as on the embedded engine. */
export const TYPES = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 || oid === INT4 || oid === INT2
      ? BigInt
      : (types.getTypeParser(oid, format) as unknown)) as typeof types.getTypeParser,
};

const CONNECTIONS = 10;
/** Statements that wait for a connection. More are refused at once, because they would wait in vain. */
const WAITING_MAX = 2_000;
/** The message of pg-pool after CONNECT_MS without a free connection. It has no code. */
const NONE_FREE = 'timeout exceeded when trying to connect';
/** The error code of a prepared statement whose table has a new column, because a newer gateway has migrated it. */
const STALE_PLAN = '0A000';
/**
 * Error codes of a transaction that the server aborted because of concurrent transactions: deadlock, serialization
 * failure.
 */
const IN_THE_WAY: ReadonlySet<string> = new Set(['40P01', '40001']);
const CONNECT_MS = 3_000;
/**
 * A server that does not answer within this time counts as unreachable. An operator can change it:
 * `postgres://…?query_timeout=30000`.
 */
const QUERY_MS = 10_000;
/** Timeout for migrations and audits, which read or write whole tables. */
const LONG_MS = 3_600_000;
const CLOCK: Statement = {
  name: 'store/clock',
  text: 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS DOUBLE PRECISION) AS ms',
};

/**
 * Snapshots are for sums over many rows. With less memory than this, PostgreSQL sorts their groups on the disk, which
 * took twice the time for 180,000 rows. A server with more keeps it.
 */
const SNAPSHOT_MEMORY_BYTES = 32 * 1024 * 1024;
const BEGIN_SNAPSHOT = `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT set_config('work_mem', GREATEST(pg_size_bytes(current_setting('work_mem')), ${SNAPSHOT_MEMORY_BYTES}) / 1024 || 'kB', true)`;

/**
 * The advisory lock for migrations, so that gateways migrate one after the other. The number is arbitrary, but every
 * gateway must use the same.
 */
const MIGRATION_LOCK = 402_402_402;

/**
 * Connects to PostgreSQL and migrates its schema. Connections that break when the server restarts are replaced.
 * Statements that were running on them fail with `unavailable`.
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
  // The pool drops an idle connection that fails. Without a listener, the error would end the process.
  pool.on('error', () => {});
  // The listener must be there from the first moment. A stopping server can send its error together with the bytes that
  // complete the connection, before the waiting code gets the connection.
  pool.on('connect', (client) => client.on('error', noteLoss));

  /** When the server last answered, on the monotonic clock. */
  let answeredAt = Number.NEGATIVE_INFINITY;
  const connect = async (): Promise<PoolClient> => {
    if (pool.waitingCount >= WAITING_MAX) throw notConnected(performance.now() - answeredAt);
    try {
      return await pool.connect();
    } catch (error) {
      if (error instanceof Error && error.message === NONE_FREE) throw notConnected(performance.now() - answeredAt);
      throw toDatabaseError(error);
    }
  };

  const withOne = async <T>(run: (client: PoolClient) => Promise<T>): Promise<T> => {
    const client = await connect();
    let failure: DatabaseError | undefined;
    try {
      const result = await run(client);
      answeredAt = performance.now();
      return result;
    } catch (error) {
      failure = error instanceof DatabaseError ? error : toDatabaseError(error);
      if (!failure.unavailable) answeredAt = performance.now();
      throw failure;
    } finally {
      client.release(failure !== undefined && (failure.unavailable || failure.code === STALE_PLAN));
    }
  };

  const withClient = async <T>(run: (client: PoolClient) => Promise<T>): Promise<T> => {
    // A retry is safe, because after these errors the transaction had no effect. Every pooled connection may have a
    // stale plan; a connection with one is replaced.
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
        // A failed connection is closed, which also ends its transaction.
        if (!toDatabaseError(error).unavailable) await client.query('ROLLBACK').catch(() => {});
        throw error;
      }
    });

  try {
    await withClient((client) => withClient((other) => refuseOtherSession(client, other)));
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

  const inSnapshotPlace = createSnapshotPlaces();
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
    snapshot: (party, run, temporary = []) =>
      inSnapshotPlace(party, () =>
        transaction(
          BEGIN_SNAPSHOT,
          async (client) => {
            const query: Query = (statement, params = []) =>
              perform(client, { statement, params }, { query_timeout: LONG_MS });
            for (const statement of temporary) await query(statement);
            await client.query('SET TRANSACTION READ ONLY');
            return run(query, null);
          },
          // The rollback also drops the temporary tables.
          'ROLLBACK',
        ),
      ),
    session: (setup) =>
      openSession({ connectionString: url, connectionTimeoutMillis: CONNECT_MS, keepAlive: true, types: TYPES }, setup),
    async clock() {
      const [row] = await withClient((client) => perform(client, { statement: CLOCK }));
      return Number(row!['ms']);
    },
    close: () => (closing ??= pool.end()),
  };
}

/*
 * Two private parts of pg are used, and only in this file: the stream of a connection, and the limit of a single query.
 * test/foundation/store/pg-private-parts.test.ts has the version with which they were checked.
 */

/**
 * The stream to which a client writes: a socket, or TLS over it. A pipeline holds it back, so that all steps leave in
 * one write, and a connection that does not answer is cut with it: `end` of the client would wait for the server.
 */
const streamOf = (client: Client): Client['connection']['stream'] => client.connection.stream;

/** The running query reports the loss. This listener only keeps the error from ending the process. */
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

/**
 * Throws DatabaseError if a connection does not keep its session of the server, because it leads to a pooler that gives
 * out sessions for single transactions or statements. Settings and prepared statements of a session would be those of
 * another gateway.
 */
async function refuseOtherSession(client: PoolClient, other: PoolClient): Promise<void> {
  const sessionOf = async (one: PoolClient) =>
    (await one.query<{ pid: bigint }>('SELECT pg_backend_pid() AS pid')).rows[0]!.pid;
  const before = await sessionOf(client);
  await other.query('BEGIN');
  try {
    // A pooler has given the session that was just free to the transaction.
    const session = await sessionOf(other);
    if (session !== before && (await sessionOf(client)) === before) return;
  } finally {
    await other.query('ROLLBACK');
  }
  throw new DatabaseError(
    'it is behind a pooler in transaction mode, and tollgate needs sessions. Set pool_mode = session in PgBouncer, or connect to PostgreSQL itself',
    { code: 'pooler' },
  );
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

/** One connection in pipeline mode. */
export interface PostgresSession {
  /**
   * Sends all steps at once, without waiting for answers in between. After all answers have arrived, rejects with the
   * first error.
   */
  pipeline(steps: readonly Step[]): Promise<readonly (readonly Row[])[]>;
  /** True after the connection is lost. Statements in flight may or may not have been executed. */
  readonly lost: boolean;
  /** Closes the connection at once. Statements in flight fail with `unavailable`. */
  destroy(): void;
  close(): Promise<void>;
}

const CLOSE_MS = 1_000;
/**
 * Timeout for connecting and setup together. The connection timeout alone would not cover a server that stops answering
 * during the setup.
 */
const SETUP_MS = 4_000;

export async function openSession(config: ClientConfig, setup: readonly Statement[]): Promise<PostgresSession> {
  const client = new Client({ ...config, pipeline: true });
  let lost = false;
  const lose = () => {
    lost = true;
  };
  client.on('error', lose);
  client.on('end', lose);

  const pipeline = async (steps: readonly Step[]): Promise<readonly (readonly Row[])[]> => {
    if (lost)
      throw new DatabaseError('The connection to the database is lost', { code: 'connection', unavailable: true });
    const stream = streamOf(client);
    stream.cork();
    const answers = steps.map(({ statement, params }) =>
      client.query<Record<string, Value>>({
        name: statement.name,
        text: statement.text,
        values: (params ?? []) as Value[],
      }),
    );
    stream.uncork();
    const settled = await Promise.allSettled(answers);
    return settled.map((answer) => {
      if (answer.status === 'rejected') throw toDatabaseError(answer.reason);
      return answer.value.rows;
    });
  };

  const timer = setTimeout(() => streamOf(client).destroy(), SETUP_MS);
  try {
    await client.connect();
    await pipeline(setup.map((statement) => ({ statement })));
  } catch (error) {
    streamOf(client).destroy();
    throw toDatabaseError(error);
  } finally {
    clearTimeout(timer);
  }
  return {
    pipeline,
    get lost() {
      return lost;
    },
    destroy() {
      lost = true;
      streamOf(client).destroy();
    },
    async close() {
      // A server that no longer answers must not keep a gateway from stopping.
      const timer = setTimeout(() => streamOf(client).destroy(), CLOSE_MS);
      await client.end();
      clearTimeout(timer);
    },
  };
}

/** The error of a statement that got no connection. `silentMs`: so long the server has answered nothing. */
function notConnected(silentMs: number): DatabaseError {
  const isBusy = silentMs < CONNECT_MS;
  const message = isBusy ? 'All connections to the database are in use' : 'The database does not answer';
  return new DatabaseError(message, { code: isBusy ? BUSY : 'connection', unavailable: true });
}

/** PostgreSQL's SQLSTATEs of violated constraints, with the codes that both engines share. */
const CONSTRAINTS: Readonly<Record<string, string>> = {
  '23502': 'not_null_violation',
  '23503': 'foreign_key_violation',
  '23505': 'unique_violation',
  '23514': 'check_violation',
};

/**
 * Codes after which a retry may succeed: the server shuts down, crashed, starts, is out of connections, memory or disk,
 * is a standby, or ended an idle session.
 */
const UNAVAILABLE = /^(08...|53...|57P0[1-5]|58030|25006|25P0[34]|E.*)$/;

const DISK_FULL = '53100';

/**
 * Wraps an error of `pg`. An error of the server has a SQLSTATE. An error without any code counts as a failed
 * connection.
 */
export function toDatabaseError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  const message = error instanceof Error ? error.message || error.name : String(error);
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'connection';
  const unavailable = code === 'connection' || UNAVAILABLE.test(code);
  return new DatabaseError(message || code, {
    code: CONSTRAINTS[code] ?? code,
    unavailable,
    full: code === DISK_FULL,
    cause: error,
  });
}
