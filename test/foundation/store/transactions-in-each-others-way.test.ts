import { Client } from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { freshDatabase } from '../../support/fresh-database.ts';

test('transactions that wait for each other in a circle all happen, once each', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  onTestFinished(fresh.drop);
  const database = await openDatabase({ url: fresh.url, dataDir: '' });
  onTestFinished(() => database.close());
  const other = new Client({ connectionString: fresh.url });
  onTestFinished(() => other.end());
  await other.connect();
  await other.query("INSERT INTO accounts (id, available, locked) VALUES ('escrow:a', 0, 0), ('escrow:b', 0, 0)");
  const add = (id: string, amount: number) =>
    `UPDATE accounts SET available = available + ${amount} WHERE id = '${id}'`;
  const waiting = adHoc(
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  );

  await other.query('BEGIN');
  await other.query(add('escrow:b', 10));
  const ours = database.batch([{ statement: adHoc(add('escrow:a', 1)) }, { statement: adHoc(add('escrow:b', 1)) }]);
  await expect.poll(async () => (await database.query(waiting)).length, { timeout: 60_000 }).toBe(1);
  // Not the one that the server ends: whoever waits first looks for a circle first.
  await other.query("SET deadlock_timeout = '60s'");
  await other.query(add('escrow:a', 10));
  await other.query('COMMIT');
  await ours;

  const accounts = await database.query(adHoc('SELECT id, available FROM accounts ORDER BY id'));
  expect(accounts).toEqual([
    { id: 'escrow:a', available: 11n },
    { id: 'escrow:b', available: 11n },
  ]);
  const deadlocks = adHoc('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
  // One, or more: the repeated transaction may be first again.
  await expect
    .poll(async () => (await database.query(deadlocks))[0]!['deadlocks'], { timeout: 60_000 })
    .toBeGreaterThanOrEqual(1n);
});
