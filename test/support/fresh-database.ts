import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

export interface FreshDatabase {
  readonly url: string;
  /** Removes it, whoever is still connected. */
  drop(): Promise<void>;
}

/** The database with all tables as they are made, on the server that tests share, of which the others are copies. */
const MIGRATED = 'migrated';
/** Names the URL of that server to the processes of the run. */
const SHARED_SERVER = 'TOLLGATE_TEST_POSTGRES_URL';

/** Makes the database that `freshDatabase` copies; `migrate` makes its tables. */
export async function prepareFreshDatabases(url: string, migrate: (url: string) => Promise<void>): Promise<void> {
  await command(url, `CREATE DATABASE ${MIGRATED}`);
  await migrate(urlOf(url, MIGRATED));
  process.env[SHARED_SERVER] = url;
}

/** A database of one's own. On the server that tests share it has all tables, as the migrations leave them. */
export async function freshDatabase(url: string): Promise<FreshDatabase> {
  if (url !== process.env[SHARED_SERVER]) return bareDatabase(url);
  const own = emptied.pop() ?? (await create(url, `TEMPLATE ${MIGRATED}`));
  return { url: own, drop: () => giveBack(url, own) };
}

/** A database of one's own without any table, on the server of `url`. */
export async function bareDatabase(url: string): Promise<FreshDatabase> {
  const own = await create(url, '');
  return { url: own, drop: () => remove(url, own) };
}

/** One statement as the server's superuser, on a connection of its own. */
export async function command(url: string, text: string): Promise<void> {
  await connected(url, (client) => client.query(text));
}

/** Databases of this process that the next test takes: to empty one costs a tenth of making one. */
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
    return true;
  }).catch(() => false);
  if (!isWhole) return remove(url, own);
  // Under another name: a gateway that a test left behind does not come back to it.
  const name = newName();
  const renamed = command(url, `ALTER DATABASE ${nameOf(own)} RENAME TO ${name}`);
  await renamed.then(
    () => emptied.push(urlOf(url, name)),
    () => remove(url, own),
  );
}

let migrated: Promise<{ readonly shape: string; readonly rows: string }> | undefined;

/** Tables, constraints and triggers. A database made from a template has them under the template's own numbers. */
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

/** Statements that give every table the rows that it has here; meanwhile nothing checks references. */
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
