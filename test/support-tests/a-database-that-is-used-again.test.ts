import { Client } from 'pg';
import { expect, inject, test } from 'vitest';
import { freshDatabase } from '../support/fresh-database.ts';

const COMMITS = 500;

test('a database that another test has used counts its commits and deadlocks from zero', async () => {
  const first = await freshDatabase(inject('postgresUrl'));
  await connected(first.url, async (client) => {
    for (let n = 0; n < COMMITS; n += 1) await client.query('SELECT 1');
    await client.query('SELECT pg_stat_force_next_flush()');
    await expect.poll(() => commitsOf(client), { timeout: 30_000 }).toBeGreaterThanOrEqual(COMMITS);
  });
  await first.drop();
  const second = await freshDatabase(inject('postgresUrl'));
  expect(await connected(second.url, commitsOf)).toBeLessThan(COMMITS);
  await second.drop();
});

async function commitsOf(client: Client): Promise<number> {
  const { rows } = await client.query(
    'SELECT xact_commit::int AS commits FROM pg_stat_database WHERE datname = current_database()',
  );
  return (rows[0] as { commits: number }).commits;
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
