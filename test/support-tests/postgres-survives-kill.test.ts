import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import type { Postgres } from '../support/postgres.ts';

let postgres: Postgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

async function query(text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new Client({ connectionString: postgres.url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

it('keeps what was committed over kill9, immediate and fast restarts', async () => {
  await query('CREATE TABLE kept (n int)');
  await query('INSERT INTO kept VALUES (1)');
  await postgres.kill9();
  await expect(query('SELECT 1')).rejects.toThrow('ECONNREFUSED');
  await postgres.restart();
  await query('INSERT INTO kept VALUES (2)');
  await postgres.restart('immediate');
  await query('INSERT INTO kept VALUES (3)');
  await postgres.restart('fast');
  expect(await query('SELECT n FROM kept ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
});

it('syncs to disk unless told otherwise', async () => {
  expect(await query('SHOW fsync')).toEqual([{ fsync: 'on' }]);
  expect(await query('SHOW max_connections')).toEqual([{ max_connections: '300' }]);
});

it('frozen, it answers nothing until it is thawed', async () => {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  postgres.freeze();
  let answered = false;
  const answer = client.query('SELECT 1 AS one').then((result) => {
    answered = true;
    return result.rows;
  });
  // Time for a hundred answers.
  const idle = new Client({ connectionString: postgres.url, connectionTimeoutMillis: 100 });
  await expect(idle.connect()).rejects.toThrow('timeout');
  expect(answered).toBe(false);
  postgres.thaw();
  expect(await answer).toEqual([{ one: 1 }]);
  await client.end();
});

it('frozen, it can be killed and started again', async () => {
  const client = new Client({ connectionString: postgres.url });
  client.on('error', () => {});
  await client.connect();
  postgres.freeze();
  await postgres.kill9();
  await postgres.restart();
  expect(await query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
});
