import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { audit, compareJournal, createBill, createLedger, createPriceBook, journalHead } from '#billing/compose';
import type { Ledger, LockRequest } from '#billing';
import { CancelSource } from '#billing/amounts';
import { openDatabase, type OpenDatabase } from '#store';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';

/*
 * A lock that ends with its call is flushed with the next group. On this server nothing else flushes for ten seconds,
 * so a crash loses what was committed last.
 */
let postgres: Postgres;
let database: OpenDatabase;
let ledger: Ledger;
beforeAll(async () => {
  postgres = await startPostgres({ settings: { wal_writer_delay: '10s', autovacuum: 'off' } });
  database = await openDatabase({ url: postgres.url, dataDir: '' });
  ledger = await createLedger({ database });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await credit('fund', 1_000n);
});
afterAll(async () => {
  await ledger.close();
  await database.close();
  await postgres.stop();
});
let last = '';
beforeEach(({ task }) => {
  last = task.id;
});

const credit = (id: string, amount: bigint) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount, memo: '' });
const request = (id: string, endsWithCall: boolean): LockRequest => ({
  id,
  account: 'a',
  amount: 100n,
  prices: [CRASH_PRICE.id],
  expiresAt: Date.now() + 600_000,
  endsWithCall,
  detail: '{}',
});
const settle = (id: string) =>
  ledger.settle({
    id,
    charge: 7n,
    price: CRASH_PRICE.id,
    provider: 'p',
    draw: false,
    feeBps: 0,
    usage: '{"call":7}',
    detail: '{}',
  });
const failing = async () => (await audit(database)).checks.filter(({ ok }) => !ok);
const crash = () => postgres.restart('immediate');

test('a crash loses the lock of a call that ends with it, and nothing else', async () => {
  await ledger.lock(request(`${last}-task`, false));
  expect(await ledger.lock(request(`${last}-call`, true))).toMatchObject({ ok: true });
  expect(await ledger.find(`${last}-call`)).toMatchObject({ state: 'held' });
  const { available } = (await ledger.balance('escrow:a'))!;
  await crash();
  expect(await ledger.find(`${last}-task`)).toMatchObject({ state: 'held' });
  expect(await ledger.find(`${last}-call`)).toBe(null);
  expect((await ledger.balance('escrow:a'))!.available).toBe(available + 100n);
  expect(await settle(`${last}-call`)).toEqual({ ok: false, reason: 'not_found' });
  expect(await settle(`${last}-task`)).toMatchObject({ ok: true, charged: 7n });
  expect(await failing()).toEqual([]);
});

test('a settlement flushes the locks before it', async () => {
  await ledger.lock(request(`${last}-before`, true));
  await ledger.lock(request(`${last}-settled`, true));
  await settle(`${last}-settled`);
  await crash();
  expect(await ledger.find(`${last}-before`)).toMatchObject({ state: 'held' });
  expect(await ledger.find(`${last}-settled`)).toMatchObject({ state: 'settled', charged: 7n });
  await ledger.release({ id: `${last}-before`, detail: '{}' });
  expect(await failing()).toEqual([]);
});

/** The middleware over one call. `run` is what happens while the lock is held. */
function billed(id: string, run: () => Promise<void>) {
  const lost: string[] = [];
  const states: string[] = [];
  const bill = createBill({
    ledger,
    lockOf: (call) => request(call.id, true),
    feeBps: 0,
    drainMs: 1_000,
    drainBytes: 1_000,
    refuse: (_call, refusal) => new Error(refusal.reason),
    receipt: () => null,
    onStarted: () => {},
    onRefused: () => {},
    onLockLost: (call) => lost.push(call.id),
    onResolved: (_call, { state }) => states.push(state),
  });
  const call = {
    id,
    candidates: [{ price: CRASH_PRICE, estimate: 100n }],
    continues: null,
    parent: null,
    lendable: 0n,
    adapter: { endsWithCall: true },
  };
  const frames = bill(async function* () {
    await run();
    yield {
      type: 'end',
      price: CRASH_PRICE.id,
      provider: 'p',
      providerName: 'p',
      usage: { call: 7n },
      outcome: 'complete',
      estimated: false,
      detail: {},
      result: null,
    } as const;
  })(call, new CancelSource());
  return { frames, lost, states };
}

test('a call whose lock was lost is locked and settled in one, and told of', async () => {
  const { frames, lost, states } = billed(last, crash);
  const settled: unknown[] = [];
  for await (const frame of frames) settled.push(frame);
  expect(settled).toMatchObject([{ type: 'settled', settlement: { charged: 7n } }]);
  expect({ lost, states }).toEqual({ lost: [last], states: ['settled'] });
  expect(await ledger.find(last)).toMatchObject({ state: 'settled', charged: 7n });
  await crash();
  expect(await ledger.find(last)).toMatchObject({ state: 'settled', charged: 7n });
  expect(await failing()).toEqual([]);
});

test('a call that fails after its lock was lost costs nothing, and has a record', async () => {
  const { frames, lost, states } = billed(last, async () => {
    await crash();
    throw new Error('the provider is gone');
  });
  await expect(frames[Symbol.asyncIterator]().next()).rejects.toThrow('the provider is gone');
  expect({ lost, states }).toEqual({ lost: [last], states: ['released'] });
  expect(await ledger.find(last)).toMatchObject({ state: 'released', charged: 0n });
  expect(await failing()).toEqual([]);
});

test('a call whose lock was lost, and whose money was spent meanwhile, is not settled', async () => {
  const { frames, lost, states } = billed(last, async () => {
    await crash();
    const { available } = (await ledger.balance('escrow:a'))!;
    await ledger.transfer({ id: `${last}-away`, from: 'escrow:a', to: 'treasury:test', amount: available, memo: '' });
  });
  await expect(frames[Symbol.asyncIterator]().next()).rejects.toThrow('could not be settled: not_found');
  expect({ lost, states }).toEqual({ lost: [last], states: ['unresolved'] });
  expect((await ledger.balance('escrow:a'))!.available).toBe(0n);
  expect(await failing()).toEqual([]);
});

test('the head of the journal that is stored elsewhere is never lost', async () => {
  const chain = async () => {
    const [row] = await database.query(adHoc('SELECT chain FROM journal_batches ORDER BY at DESC, n DESC LIMIT 1'));
    return row!['chain'] as string;
  };
  await credit('more', 1_000n);
  expect(await ledger.lock(request(`${last}-1`, true))).toMatchObject({ ok: true });
  const head = await journalHead(database, await chain());
  await crash();
  expect(await compareJournal(database, head)).toEqual({ state: 'there' });
  expect(await ledger.lock(request(`${last}-2`, true))).toMatchObject({ ok: true });
  expect(await compareJournal(database, head)).toEqual({ state: 'there' });
});
