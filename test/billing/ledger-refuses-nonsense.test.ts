import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { MICRO_USD_MAX } from '#billing/amounts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  let ledger: Ledger;
  beforeAll(async () => {
    engine = await openEngine(name);
    ledger = await createLedger({ database: engine.database });
    await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
  });
  afterAll(async () => {
    await ledger.close();
    await engine.dispose();
  });

  const lock = { id: 'lock', account: 'a', amount: 10n, prices: ['p'], expiresAt: 0, detail: '{}' };
  const settle = {
    id: 'lock',
    price: 'p',
    provider: 'x',
    charge: 1n,
    draw: false,
    feeBps: 0,
    usage: '{}',
    detail: '{}',
  };
  const transfer = { id: 'transfer', from: 'escrow:a', to: 'escrow:b', amount: 1n, memo: '' };

  test('what no caller may ask is an error, not a result', async () => {
    for (const amount of [-1n, MICRO_USD_MAX + 1n])
      await expect(ledger.lock({ ...lock, amount })).rejects.toThrow(RangeError);
    for (const lendable of [-1n, 11n])
      await expect(ledger.lock({ ...lock, lendable })).rejects.toThrow('it must be from 0 to its amount, 10');
    for (const until of [Number.NaN, 0.5, Infinity])
      await expect(ledger.keep('lock', until)).rejects.toThrow(RangeError);
    for (const amount of [0n, -1n, MICRO_USD_MAX + 1n])
      await expect(ledger.transfer({ ...transfer, amount })).rejects.toThrow(RangeError);
    await expect(ledger.transfer({ ...transfer, to: 'escrow:a' })).rejects.toThrow(RangeError);
    await expect(ledger.settle({ ...settle, charge: -1n })).rejects.toThrow(RangeError);
    for (const feeBps of [-1, 10_001, 0.5, Number.NaN])
      await expect(ledger.settle({ ...settle, feeBps })).rejects.toThrow(RangeError);
    for (const expiresAt of [1.5, Number.NaN, 2 ** 60])
      await expect(ledger.lock({ ...lock, expiresAt })).rejects.toThrow(RangeError);
    await expect(ledger.lock({ ...lock, id: '' })).rejects.toThrow(RangeError);
    expect(await ledger.balance('escrow:a')).toEqual({ available: 1_000n, locked: 0n });
  });

  test('an operation that the database refuses fails alone, not with its group', async () => {
    const group = ['one', 'two', 'three'].map((id) => ledger.lock({ ...lock, id }));
    // PostgreSQL holds no NUL in text, and no engine holds more than 63 bits.
    const poison = ledger.lock({ ...lock, id: 'four', detail: 'a\0b', expiresAt: name === 'sqlite' ? Number.NaN : 0 });
    await expect(poison).rejects.toThrow();
    expect(await Promise.all(group)).toEqual([
      { ok: true, available: 990n },
      { ok: true, available: 980n },
      { ok: true, available: 970n },
    ]);
    expect(await ledger.find('four')).toBeNull();
    expect(await ledger.balance('escrow:a')).toEqual({ available: 970n, locked: 30n });
  });
});
