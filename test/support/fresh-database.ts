import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

export interface FreshDatabase {
  readonly url: string;
  /** Removes it, whoever is still connected. */
  drop(): Promise<void>;
}

/** The database that has all tables and no rows; the run's setup makes it on the server that tests share. */
export const MIGRATED = 'migrated';

/** A database of one's own with all tables and no rows, on the server of `url`, which tests share. */
export async function freshDatabase(url: string): Promise<FreshDatabase> {
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
  const own = new URL(url);
  own.pathname = `/test_${randomBytes(8).toString('hex')}`;
  await command(url, `CREATE DATABASE ${own.pathname.slice(1)} ${how}`);
  return own.href;
}

const remove = (url: string, own: string): Promise<void> =>
  command(url, `DROP DATABASE IF EXISTS ${new URL(own).pathname.slice(1)} WITH (FORCE)`);

async function giveBack(url: string, own: string): Promise<void> {
  const migrated = new URL(url);
  migrated.pathname = `/${MIGRATED}`;
  shapeOfMigrated ??= connected(migrated.href, shapeOf);
  const wanted = await shapeOfMigrated;
  const isWhole = await connected(own, async (client) => {
    await client.query(
      'SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    if ((await shapeOf(client)) !== wanted) return false;
    await client.query(EMPTY);
    return true;
  });
  if (isWhole) emptied.push(own);
  else await remove(url, own);
}

let shapeOfMigrated: Promise<string> | undefined;

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

/** Takes all rows but those of applied migrations. References between tables are not looked at meanwhile. */
const EMPTY = `DO $$
  DECLARE one text;
  BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migrations' LOOP
      EXECUTE format('DELETE FROM %I', one);
    END LOOP;
  END $$`;

async function connected<T>(url: string, run: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}
