import { Client } from 'pg';
import { afterEach, expect, inject, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { openDatabase } from '#store';
import { adHoc } from '../support/ad-hoc.ts';
import { freshDatabase } from '../support/fresh-database.ts';

const disposals: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

test('a lock that was made while another account was waited for is resolved only after its own account is locked', async () => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  disposals.push(fresh.drop);
  const gateway = async () => {
    const database = await openDatabase({ url: fresh.url, dataDir: '' });
    const ledger = await createLedger({ database });
    disposals.push(async () => {
      await ledger.close();
      await database.close();
    });
    return { database, ledger };
  };
  const { database, ledger: quick } = await gateway();
  const { ledger: slow } = await gateway();
  for (const account of ['held-up', 'free'])
    await slow.transfer({
      id: `fund-${account}`,
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 1_000n,
      memo: '',
    });
  const lock = { account: 'free', amount: 100n, prices: ['price-1'], expiresAt: Date.now() + 600_000, detail: '{}' };
  const budget = { id: 'held-up', limit: 1_000n };
  await slow.lock({ ...lock, id: 'first-use', account: 'held-up', budgets: [budget] });

  const hold = async (text: string) => {
    const client = new Client({ connectionString: fresh.url });
    disposals.push(() => client.end());
    await client.connect();
    await client.query('BEGIN');
    await client.query(text);
    return { letGo: () => client.query('ROLLBACK') };
  };
  const account = await hold("SELECT 1 FROM accounts WHERE id = 'escrow:held-up' FOR UPDATE");
  const limit = await hold("SELECT 1 FROM budgets WHERE id = 'held-up' FOR UPDATE");
  // Not inside one of the transactions above, which would see the same activity for ever.
  const waiting = adHoc(
    "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  );
  const waitsFor = async (table: string) => {
    const count = async () =>
      (await database.query(waiting)).filter(({ query }) => String(query).includes(`FROM ${table}`)).length;
    await expect.poll(count, { timeout: 60_000 }).toBe(1);
  };

  // One group: it waits for an account that has nothing to do with the lock, and then for a budget.
  const group = Promise.all([
    slow.lock({ ...lock, id: 'other', account: 'held-up', budgets: [budget] }),
    slow.release({ id: 'parent', detail: '{}' }),
  ]);
  await waitsFor('accounts');
  expect(await quick.lock({ ...lock, id: 'parent', amount: 300n, lendable: 200n })).toMatchObject({ ok: true });
  await account.letGo();
  await waitsFor('budgets');
  expect(await quick.lock({ ...lock, id: 'child', parent: 'parent' })).toMatchObject({ ok: true });
  await limit.letGo();

  expect(await group).toEqual([{ ok: true, available: 800n }, { ok: true }]);
  expect(await quick.find('parent')).toMatchObject({ state: 'released', lent: 100n });
  expect(await quick.balance(escrowOf('free'))).toEqual({ available: 900n, locked: 100n });
  // Decided right at once: had the database refused the group, each would have been committed alone.
  const batches = adHoc(
    `SELECT chain, n FROM journal_batches WHERE movements LIKE '%["lock","other"%' OR movements LIKE '%["release","parent"%'`,
  );
  expect(await database.query(batches)).toHaveLength(1);
  const report = await audit(database);
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
});
