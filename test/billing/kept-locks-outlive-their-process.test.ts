import { afterEach, describe, expect, test } from 'vitest';
import { audit, createLedger, expireAll, expireOrphans } from '#billing/compose';
import { escrowOf, treasuryOf, type Ledger } from '#billing';
import type { LockRequest } from '../../src/billing/ledger/ledger.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

describe.each(ENGINES)('%s', (name) => {
  let now = 1_000_000;
  let engine: OpenedEngine | undefined;
  let ledger: Ledger;
  afterEach(async () => {
    await ledger.close();
    await engine?.dispose();
  });

  const open = async () => {
    engine = await openEngine(name);
    ledger = await createLedger({ database: engine.database, now: () => now });
    await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf('a'), amount: 1_000n, memo: '' });
    await lock('task', { amount: 400n, lendable: 300n });
  };
  /** What a new process finds: the data, and nothing else. */
  const restart = async () => {
    await ledger.close();
    await engine!.database.close();
    const database = await engine!.again();
    ledger = await createLedger({ database, now: () => now });
    return database;
  };
  const lock = (id: string, changes: Partial<LockRequest> = {}) =>
    ledger.lock({
      id,
      account: 'a',
      amount: 100n,
      prices: ['price-1'],
      expiresAt: now + 1_000,
      detail: '{}',
      ...changes,
    });
  const states = async (...ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await ledger.find(id))?.state));

  test('a lock that is kept survives the expiry of orphans at the start, and all others are given back', async () => {
    await open();
    await lock('call');
    await lock('later', { expiresAt: now + 1_000_000_000 });
    await lock('under', { parent: 'task' });
    await lock('lent-on', { parent: 'task', amount: 50n, lendable: 50n });
    expect(await ledger.keep('task', now + 60_000)).toEqual({ ok: true });
    expect(await ledger.find('task')).toMatchObject({ isKept: true, expiresAt: now + 60_000, state: 'held' });
    const database = await restart();
    expect(await ledger.find('task')).toMatchObject({ isKept: true, expiresAt: now + 60_000, lent: 150n });
    expect(await expireOrphans(ledger)).toBe(4);
    expect(await states('task', 'call', 'later', 'under', 'lent-on')).toEqual([
      'held',
      'expired',
      'expired',
      'expired',
      'expired',
    ]);
    // What was lent to calls that ended with the process is the task's again.
    expect(await ledger.find('task')).toMatchObject({ lent: 0n });
    expect(await ledger.balance(escrowOf('a'))).toEqual({ available: 600n, locked: 400n });
    expect(await lock('next', { parent: 'task', amount: 300n })).toMatchObject({ ok: true });
    expect(await audit(database, { overdueMs: null })).toMatchObject({ ok: true });
  });

  test('a kept child outlives its parent and gives back to what is available', async () => {
    await open();
    await lock('under', { parent: 'task' });
    await ledger.keep('under', now + 60_000);
    const database = await restart();
    expect(await expireOrphans(ledger)).toBe(1);
    expect(await states('task', 'under')).toEqual(['expired', 'held']);
    expect(await ledger.balance(escrowOf('a'))).toEqual({ available: 900n, locked: 100n });
    await ledger.release({ id: 'under', detail: '{}' });
    expect(await ledger.balance(escrowOf('a'))).toEqual({ available: 1_000n, locked: 0n });
    expect(await audit(database, { overdueMs: null })).toMatchObject({ ok: true });
  });

  test('a kept lock lives to its time and not beyond it', async () => {
    await open();
    await ledger.keep('task', now + 60_000);
    now += 59_999;
    expect(await expireAll(ledger, now)).toBe(0);
    now += 1;
    expect(await expireAll(ledger, now)).toBe(1);
    expect(await states('task')).toEqual(['expired']);
  });

  test('a lock that is kept while orphans are being looked for is none of them', async () => {
    await open();
    const expiring = ledger.expire(Number.MAX_SAFE_INTEGER, 10, 'kept');
    expect(await ledger.keep('task', now + 60_000)).toEqual({ ok: true });
    expect(await expiring).toEqual([]);
    expect(await states('task')).toEqual(['held']);
  });

  test('orphans are many more than are expired at a time', async () => {
    await open();
    await ledger.keep('task', now);
    await Promise.all(Array.from({ length: 1_200 }, (_, index) => lock(`free-${index}`, { amount: 0n })));
    expect(await expireOrphans(ledger)).toBe(1_200);
    expect(await states('task')).toEqual(['held']);
  });

  test('keeping moves the time only forward, and may be repeated', async () => {
    await open();
    const until = (await ledger.find('task'))!.expiresAt;
    expect(await ledger.keep('task', until - 500)).toEqual({ ok: true });
    expect(await ledger.find('task')).toMatchObject({ isKept: true, expiresAt: until });
    expect(await ledger.keep('task', until + 5)).toEqual({ ok: true });
    expect(await ledger.keep('task', until)).toEqual({ ok: true });
    expect(await ledger.find('task')).toMatchObject({ isKept: true, expiresAt: until + 5 });
  });

  test('only a held lock can be kept', async () => {
    await open();
    await ledger.release({ id: 'task', detail: '{}' });
    expect(await ledger.keep('task', now)).toEqual({ ok: false, reason: 'already_resolved' });
    expect(await ledger.keep('unknown', now)).toEqual({ ok: false, reason: 'not_found' });
  });

  test('a lock is made, kept and drawn on in one breath', async () => {
    await open();
    await Promise.all([
      lock('quick', { lendable: 60n }),
      ledger.keep('quick', now + 9_000),
      lock('quick-a', { parent: 'quick', amount: 60n }),
    ]);
    await Promise.all([ledger.release({ id: 'quick-a', detail: '{}' }), ledger.keep('quick', now + 10_000)]);
    expect(await ledger.find('quick')).toMatchObject({
      isKept: true,
      expiresAt: now + 10_000,
      lent: 0n,
      lendable: 60n,
    });
    await Promise.all([ledger.keep('quick', now + 11_000), ledger.release({ id: 'quick', detail: '{}' })]);
    expect(await ledger.find('quick')).toMatchObject({ isKept: true, expiresAt: now + 11_000, state: 'released' });
    expect(await audit(engine!.database, { overdueMs: null })).toMatchObject({ ok: true });
  });
});
