import { afterEach, beforeEach, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { openEngine, type OpenedEngine } from '../support/engines.ts';

let engine: OpenedEngine;
let own: Ledger;
let other: Ledger;
beforeEach(async () => {
  engine = await openEngine('postgres');
  await createPriceBook(engine.database).remember([CRASH_PRICE]);
  own = await createLedger({ database: engine.database });
  other = await createLedger({ database: await engine.again() });
  await own.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
});
afterEach(async () => {
  expect((await audit(engine.database, { overdueMs: null })).checks.filter(({ ok }) => !ok)).toEqual([]);
  await own.close();
  await other.close();
  await engine.dispose();
});

const lock = (ledger: Ledger, id: string, amount = 100n) =>
  ledger.lock({ id, account: 'a', amount, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000, detail: '{}' });
const settle = (ledger: Ledger, id: string, charge = 60n) =>
  ledger.settle({
    id,
    charge,
    price: CRASH_PRICE.id,
    provider: 'p',
    draw: false,
    feeBps: 0,
    usage: `{"call":${charge}}`,
    detail: '{}',
  });

test('a lock that the other has resolved is not resolved again, and its group is not lost', async () => {
  for (const id of ['settled', 'released', 'held']) expect(await lock(own, id)).toMatchObject({ ok: true });
  expect(await settle(other, 'settled', 10n)).toMatchObject({ ok: true, charged: 10n });
  expect(await other.release({ id: 'released', detail: '{}' })).toEqual({ ok: true });
  const results = await Promise.all([
    settle(own, 'settled'),
    own.release({ id: 'released', detail: '{}' }),
    settle(own, 'held'),
    lock(own, 'new', 1n),
  ]);
  expect(results).toMatchObject([
    { ok: false, reason: 'already_resolved' },
    { ok: false, reason: 'already_resolved' },
    { ok: true, charged: 60n },
    { ok: true },
  ]);
  expect(await own.find('settled')).toMatchObject({ charged: 10n });
  expect(await own.balance('escrow:a')).toEqual({ available: 929n, locked: 1n });
});

test('an id that the other has used is a duplicate, also where the lock is refused for another reason', async () => {
  await lock(other, 'used');
  expect(await lock(own, 'used')).toMatchObject({ ok: false, reason: 'duplicate' });
  expect(await lock(own, 'used', 5_000n)).toMatchObject({ ok: false, reason: 'duplicate' });
  expect(await lock(own, 'unused', 5_000n)).toMatchObject({ ok: false, reason: 'insufficient', available: 900n });
  await settle(other, 'used');
  const [first, again] = await Promise.all([lock(own, 'used'), lock(own, 'fine')]);
  expect(first).toMatchObject({ ok: false, reason: 'duplicate' });
  expect(again).toMatchObject({ ok: true });
});

test('a lock that the other keeps is settled, and one that it has kept is not expired as if it were not', async () => {
  await lock(own, 'kept');
  expect(await other.keep('kept', Date.now() + 6_000_000)).toEqual({ ok: true });
  expect(await own.expire(Date.now() + 1_000_000)).toEqual([]);
  expect(await settle(own, 'kept')).toMatchObject({ ok: true, charged: 60n });
  expect(await own.find('kept')).toMatchObject({ isKept: true, state: 'settled' });
});

test('what was refused changes nothing that is remembered of a lock', async () => {
  await lock(own, 'lock');
  const wrong = { id: 'lock', price: 'other', provider: 'p', charge: 1n, draw: false, feeBps: 0, usage: '{}' };
  expect(await own.settle({ ...wrong, detail: '{}' })).toEqual({ ok: false, reason: 'wrong_price' });
  expect(await settle(own, 'lock')).toMatchObject({ ok: true, charged: 60n });
  expect(await settle(own, 'lock')).toMatchObject({ ok: false, reason: 'already_resolved' });
});

/** Locks of nothing need no account. Without its row, gateways meet at the row of the lock itself. */
test('a lock of nothing that the other resolves meanwhile is neither kept nor lent from', async () => {
  const nobody = { account: 'nobody', amount: 0n, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000 };
  for (const id of ['kept', 'parent'])
    expect(await own.lock({ ...nobody, id, detail: '{}' })).toMatchObject({ ok: true });
  const before = await own.find('kept');
  const holder = await engine.again();
  if (holder.engine !== 'postgres') throw new Error('not PostgreSQL');
  const session = await holder.session([]);
  const waiting = adHoc(
    "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%locks%'",
  );
  const waiters = async (n: bigint) => {
    await expect.poll(() => engine.database.query(waiting), { timeout: 60_000 }).toEqual([{ n }]);
  };
  /** The other is first at the row of the lock, and this ledger has read it before. */
  const afterTheOther = async <T>(id: string, begin: () => Promise<T>): Promise<T> => {
    await session.pipeline([
      { statement: adHoc('BEGIN') },
      { statement: adHoc('SELECT 1 FROM locks WHERE id = $1 FOR UPDATE'), params: [id] },
    ]);
    const released = other.release({ id, detail: '{}' });
    await waiters(1n);
    const begun = begin();
    await waiters(2n);
    await session.pipeline([{ statement: adHoc('ROLLBACK') }]);
    expect(await released).toEqual({ ok: true });
    return begun;
  };
  const refused = { ok: false, reason: 'already_resolved' };
  expect(await afterTheOther('kept', () => own.keep('kept', Date.now() + 6_000_000))).toEqual(refused);
  expect(await own.find('kept')).toMatchObject({ state: 'released', isKept: false, expiresAt: before!.expiresAt });
  const child = { ...nobody, id: 'child', parent: 'parent', detail: '{}' };
  expect(await afterTheOther('parent', () => own.lock(child))).toMatchObject({ ok: false, reason: 'parent_over' });
  expect(await own.find('child')).toBe(null);
  await session.close();
});
