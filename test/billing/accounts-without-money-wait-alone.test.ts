import { Client } from 'pg';
import { expect, test } from 'vitest';
import { LedgerUnavailable } from '#billing';
import type { Committer } from '../../src/billing/ledger/group-commit.ts';
import { createLanes, ShortAccounts } from '../../src/billing/ledger/ledger-lanes.ts';
import type { LedgerOperation } from '../../src/billing/ledger/ledger-operations.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { fund, lock, release, settle, watchedGateways, type WatchedGateway } from '../support/watched-gateway.ts';

const { url, start, afterwards } = watchedGateways();

async function client(): Promise<Client> {
  const made = new Client({ connectionString: url() });
  await made.connect();
  afterwards(() => made.end());
  return made;
}

/** Spends all of an account at a gateway, which then knows that it lacks money. */
async function spendAll(gateway: WatchedGateway, account: string): Promise<void> {
  await fund(gateway, account, 150n);
  expect(await lock(gateway, `${account}-first`, account)).toMatchObject({ ok: true });
  expect(await lock(gateway, `${account}-refused`, account)).toMatchObject({ ok: false, reason: 'insufficient' });
}

test('a call does not wait for the group of an account that lacks money', async () => {
  const gateway = await start();
  await fund(gateway, 'rich');
  await spendAll(gateway, 'poor');
  const other = await client();
  await other.query("BEGIN; SELECT 1 FROM accounts WHERE id = 'escrow:poor' FOR UPDATE");
  const order: string[] = [];
  const poor = lock(gateway, 'poor-waits', 'poor').finally(() => order.push('poor'));
  await lock(gateway, 'rich-1', 'rich');
  await settle(gateway, 'rich-1');
  order.push('rich');
  await other.query('ROLLBACK');
  expect(await poor).toMatchObject({ ok: false, reason: 'insufficient', available: 50n });
  expect(order).toEqual(['rich', 'poor']);
});

test('the operations of an account are all in one group, also the release of a lock that another gateway made', async () => {
  const taken: string[] = [];
  const committer = (name: string) =>
    ({
      submit({ request }: LedgerOperation) {
        taken.push(`${name} ${request.id}`);
        return Promise.resolve({ ok: true });
      },
    }) as unknown as Committer;
  const short = new ShortAccounts();
  const { submit } = createLanes(committer('main'), committer('aside'), short);
  const locked = { amount: 1n, prices: [], expiresAt: 0, detail: '{}' };
  const end = { detail: '{}' };
  for (const account of ['rich', 'poor']) await submit({ kind: 'lock', request: { id: account, account, ...locked } });
  short.refused('poor');
  for (const account of ['rich', 'poor']) {
    const escrow = `escrow:${account}`;
    await submit({ kind: 'release', request: { id: `elsewhere-${account}`, account, ...end } });
    await submit({ kind: 'lock', request: { id: `next-${account}`, account, ...locked } });
    await submit({ kind: 'release', request: { id: account, ...end } });
    await submit({
      kind: 'transfer',
      request: { id: `in-${account}`, from: 'treasury:t', to: escrow, amount: 1n, memo: '' },
    });
  }
  for (const account of ['rich', 'poor'])
    await submit({ kind: 'expire', request: { id: `overdue-${account}`, account, at: 0, spareKept: false } });
  await submit({ kind: 'keep', request: { id: 'elsewhere', until: 0 } });
  expect(taken).toEqual([
    'main rich',
    'main poor',
    'main elsewhere-rich',
    'main next-rich',
    'main rich',
    'main in-rich',
    'aside elsewhere-poor',
    'aside next-poor',
    'aside poor',
    'aside in-poor',
    'main overdue-rich',
    'aside overdue-poor',
    'main elsewhere',
  ]);
});

test('a lock that was made before its account lacked money is settled and released', async () => {
  const gateway = await start();
  await fund(gateway, 'poor', 350n);
  for (const id of ['settled', 'released', 'open']) expect(await lock(gateway, id, 'poor')).toMatchObject({ ok: true });
  expect(await lock(gateway, 'refused', 'poor')).toMatchObject({ ok: false, reason: 'insufficient' });
  expect(await settle(gateway, 'settled')).toMatchObject({ ok: true, charged: 80n });
  expect(await release(gateway, 'released')).toEqual({ ok: true });
  expect(await lock(gateway, 'again', 'poor')).toEqual({ ok: true, available: 70n });
  expect(await settle(gateway, 'again')).toMatchObject({ ok: true });
  expect(await settle(gateway, 'settled')).toEqual({ ok: false, reason: 'already_resolved' });
});

const NEWEST_GROUP = `
  DELETE FROM journal_batches WHERE (chain, n) IN (
    SELECT chain, max(n) FROM journal_batches GROUP BY chain ORDER BY max(at) DESC LIMIT 1)`;
const CHAINS = adHoc('SELECT count(DISTINCT chain) AS chains FROM journal_batches');

test('nothing is written to a database that lacks the last group of an account without money', async () => {
  const gateway = await start();
  await fund(gateway, 'rich');
  await spendAll(gateway, 'poor');
  expect(await settle(gateway, 'poor-first')).toMatchObject({ ok: true });
  expect(await gateway.database.query(CHAINS, [])).toEqual([{ chains: 2n }]);
  const other = await client();
  const { rows } = await other.query<{ saved: string }>(
    `WITH lost AS (${NEWEST_GROUP} RETURNING *) SELECT row_to_json(lost) AS saved FROM lost`,
  );
  await other.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  await expect(lock(gateway, 'rich-1', 'rich')).rejects.toThrow(LedgerUnavailable);
  await expect(lock(gateway, 'rich-2', 'rich')).rejects.toThrow('lacks operations that were acknowledged');
  await expect(gateway.ledger.probe()).rejects.toThrow('lacks operations that were acknowledged');
  await other.query('INSERT INTO journal_batches SELECT * FROM json_populate_record(NULL::journal_batches, $1)', [
    rows[0]!.saved,
  ]);
  await expect.poll(() => lock(gateway, 'rich-3', 'rich')).toMatchObject({ ok: true });
});
