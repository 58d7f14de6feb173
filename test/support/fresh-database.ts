import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

export interface FreshDatabase {
  readonly url: string;
  /** Drops the database, even if clients are still connected. */
  drop(): Promise<void>;
}

/** The template database on the shared server. It has all tables as the migrations leave them. */
const MIGRATED = 'migrated';
/** The environment variable with the URL of that server. */
const SHARED_SERVER = 'TOLLGATE_TEST_POSTGRES_URL';

/** Makes the template that `freshDatabase` copies. `migrate` creates its tables. */
export async function prepareFreshDatabases(url: string, migrate: (url: string) => Promise<void>): Promise<void> {
  await command(url, `CREATE DATABASE ${MIGRATED}`);
  await migrate(urlOf(url, MIGRATED));
  process.env[SHARED_SERVER] = url;
}

/** Makes a database for one test. On the shared server it has all tables as the migrations leave them. */
export async function freshDatabase(url: string): Promise<FreshDatabase> {
  if (url !== process.env[SHARED_SERVER]) return bareDatabase(url);
  const own = emptied.pop() ?? (await create(url, `TEMPLATE ${MIGRATED}`));
  return { url: own, drop: () => giveBack(url, own) };
}

/** Makes a database without tables on the server of `url`. */
export async function bareDatabase(url: string): Promise<FreshDatabase> {
  const own = await create(url, '');
  return { url: own, drop: () => remove(url, own) };
}

/** Runs one statement as the server's superuser, on a separate connection. */
export async function command(url: string, text: string): Promise<void> {
  await connected(url, (client) => client.query(text));
}

/** Emptied databases of this process that the next tests use. Emptying one costs a tenth of creating one. */
const emptied: string[] = [];

async function create(url: string, how: string): Promise<string> {
  const name = newName();
  await command(url, `CREATE DATABASE ${name} ${how}`);
  return urlOf(url, name);
}

const newName = () => `test_${randomBytes(8).toString('hex')}`;
const nameOf = (url: string) => new URL(url).pathname.slice(1);

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

const remove = (url: string, own: string): Promise<void> =>
  command(url, `DROP DATABASE IF EXISTS ${nameOf(own)} WITH (FORCE)`);

async function giveBack(url: string, own: string): Promise<void> {
  migrated ??= connected(urlOf(url, MIGRATED), async (client) => ({
    shape: await shapeOf(client),
    rows: await rowsOf(client),
  }));
  const { shape, rows } = await migrated;
  const isWhole = await connected(own, async (client) => {
    await client.query(
      'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    if ((await shapeOf(client)) !== shape) return false;
    await client.query(rows);
    // Deadlocks and commits of the test before are not counted for the next one.
    await client.query('SELECT pg_stat_reset()');
    return true;
  }).catch(() => false);
  if (!isWhole) return remove(url, own);
  // The database gets a new name, so that a gateway which a test left running can't reconnect to it.
  const name = newName();
  const renamed = command(url, `ALTER DATABASE ${nameOf(own)} RENAME TO ${name}`);
  await renamed.then(
    () => emptied.push(urlOf(url, name)),
    () => remove(url, own),
  );
}

let migrated: Promise<{ readonly shape: string; readonly rows: string }> | undefined;

/** A hash of tables, constraints and triggers. A database made from a template has the template's object ids. */
async function shapeOf(client: Client): Promise<string> {
  const { rows } = await client.query<{ shape: string }>(`
    SELECT md5(concat(
      (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
      '/', (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace),
      '/', (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_trigger WHERE NOT tgisinternal),
      '/', (SELECT count(*) FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace))
    )) AS shape`);
  return rows[0]!.shape;
}

/** Statements that restore the rows that every table has now. References aren't checked while they run. */
async function rowsOf(client: Client): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migrations'",
  );
  const statements = ['SET session_replication_role = replica'];
  for (const { name } of rows) {
    statements.push(`DELETE FROM ${name}`);
    const kept = await client.query<{ all: string | null }>(`SELECT json_agg(one)::text AS all FROM ${name} AS one`);
    const text = kept.rows[0]!.all;
    if (text !== null)
      statements.push(
        `INSERT INTO ${name} SELECT * FROM json_populate_recordset(NULL::${name}, ${client.escapeLiteral(text)})`,
      );
  }
  return statements.join(';\n');
}

async function connected<T>(url: string, run: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}
