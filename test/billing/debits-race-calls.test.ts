import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { escrowOf, OPERATOR_TREASURY, type Ledger } from '#billing';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 6;
const GATEWAYS = 3;

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  const ledgers: Ledger[] = [];
  beforeAll(async () => {
    engine = await openEngine(name);
    ledgers.push(await createLedger({ database: engine.database }));
    // The embedded database has one opener: there, the gateways are one.
    for (let more = 1; name === 'postgres' && more < GATEWAYS; more += 1)
      ledgers.push(await createLedger({ database: await engine.again() }));
  });
  afterAll(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await engine.dispose();
  });

  test('debits and calls that race for a balance share it exactly, and a debit says what it left', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const account = `raced-${round}`;
      const from = escrowOf(account);
      const fund = { id: `credit:${account}`, from: OPERATOR_TREASURY, to: from, amount: 1_000n, memo: '' };
      await ledgers[0]!.transfer(fund);
      const lock = (index: number) =>
        ledgers[index % ledgers.length]!.lock({
          id: `${account}-${index}`,
          account,
          amount: 10n,
          prices: ['price-1'],
          expiresAt: Date.now() + 600_000,
          detail: '{}',
        });
      // Each reference is asked for at every gateway at once, and counts once.
      const debit = (index: number) =>
        ledgers[index % ledgers.length]!.transfer({
          id: `debit:${account}-${Math.floor(index / GATEWAYS)}`,
          from,
          to: OPERATOR_TREASURY,
          amount: 30n,
          memo: 'a correction',
        });
      const results = await Promise.all(
        Array.from({ length: 120 }, (_, index) => [lock(index), debit(index)] as const).flat(),
      );
      const locked = results.filter((result, index) => index % 2 === 0 && result.ok).length;
      const debits = results.filter((_, index) => index % 2 === 1);
      const taken = debits.filter(({ ok }) => ok);
      expect(debits.every((result) => 'available' in result && result.available >= 0n)).toBe(true);
      const balance = (await ledgers[0]!.balance(from))!;
      expect(balance).toEqual({
        available: 1_000n - BigInt(locked) * 10n - BigInt(taken.length) * 30n,
        locked: BigInt(locked) * 10n,
      });
      expect(balance.available < 10n).toBe(true);
    }
    expect(await audit(engine.database, { overdueMs: null })).toMatchObject({ ok: true });
  });
});
