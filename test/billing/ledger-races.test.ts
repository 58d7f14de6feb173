import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { escrowOf, treasuryOf, type Ledger } from '#billing';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';
import { FLUSH_MODES, lateEnds } from '../support/flush-modes.ts';
import { GUARDS } from '../support/ledger-guards.ts';
import { raceForLeases, raceLocks } from '../support/lock-race.ts';
import { mutatedText } from '../support/mutant.ts';

const ATTEMPTS = process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 4_000;
const GATEWAYS = 3;

const CASES = ENGINES.flatMap((name) => FLUSH_MODES.map(([mode, flushMs]) => [name, mode, flushMs] as const));

describe.each(CASES)('%s, %s', (name, _mode, flushMs) => {
  let engine: OpenedEngine;
  const ledgers: Ledger[] = [];
  beforeAll(async () => {
    engine = await openEngine(name);
    ledgers.push(lateEnds(await createLedger({ database: engine.database, flushMs })));
    // The embedded database has one opener: there, the gateways are one.
    for (let more = 1; name === 'postgres' && more < GATEWAYS; more += 1)
      ledgers.push(lateEnds(await createLedger({ database: await engine.again(), flushMs })));
  });
  afterAll(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await engine.dispose();
  });

  test('an account that can pay 1,000 locks gets exactly 1,000, however many race for them', async () => {
    const race = await raceLocks(ledgers, { width: 64, attempts: ATTEMPTS, affordable: 1_000 });
    expect(race).toEqual({ granted: 1_000, refused: ATTEMPTS - 1_000, failed: 0, available: 0n, locked: 10_000n });
    expect(await audit(engine.database)).toMatchObject({ ok: true });
  });

  test.each(['account', 'budget'] as const)('leases of one %s grant exactly what it has', async (by) => {
    const attempts = ATTEMPTS / 2;
    const race = await raceForLeases(ledgers, { width: 32, attempts, affordable: 1_000 }, by);
    expect(race).toMatchObject({ granted: 1_000, refused: attempts - 1_000, failed: 0 });
    expect(race.locked).toBe(10_000n + 3n * BigInt(ledgers.length));
    expect(await audit(engine.database)).toMatchObject({ ok: true });
  });

  test('a budget that nobody used before grants exactly what it can, however many race for it', async () => {
    const attempts = 600;
    for (let round = 0; round < 5; round += 1) {
      // Over several accounts, so that no account's row stands in for the budget's.
      const accounts = ['a', 'b', 'c'].map((name) => `budgeted-${round}-${name}`);
      await Promise.all(
        accounts.map((account) =>
          ledgers[0]!.transfer({
            id: `fund-${account}`,
            from: treasuryOf('test'),
            to: escrowOf(account),
            amount: 1_000_000n,
            memo: '',
          }),
        ),
      );
      const budget = { id: `key-${round}`, limit: 1_000n };
      const lock = (index: number) =>
        ledgers[index % ledgers.length]!.lock({
          id: `budgeted-${round}-${index}`,
          account: accounts[index % accounts.length]!,
          amount: 10n,
          prices: ['price-1'],
          expiresAt: Date.now() + 600_000,
          // As a key's and its account's: the one with room counts no more than the other grants.
          budgets: [{ id: `account-${round}`, limit: 10n ** 9n }, budget],
          detail: '{}',
        });
      let next = 0;
      let granted = 0;
      const worker = async (offset: number) => {
        while (next < attempts) if ((await lock(offset + ledgers.length * next++)).ok) granted += 1;
      };
      await Promise.all(Array.from({ length: 16 * ledgers.length }, (_, index) => worker(index % ledgers.length)));
      expect(granted).toBe(100);
      for (const id of [budget.id, `account-${round}`])
        expect(await ledgers[0]!.budget(id)).toEqual({ spent: 0n, locked: 1_000n });
    }
    expect(await audit(engine.database)).toMatchObject({ ok: true });
  });

  test('a lock that all race to resolve is resolved once', async () => {
    const account = 'resolved';
    await ledgers[0]!.transfer({
      id: `fund-${account}`,
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 1_000_000n,
      memo: '',
    });
    const ids = Array.from({ length: 200 }, (_, index) => `resolve-${index}`);
    await Promise.all(
      ids.map((id) => ledgers[0]!.lock({ id, account, amount: 10n, prices: ['price-1'], expiresAt: 0, detail: '{}' })),
    );
    const settle = { price: 'price-1', provider: 'p', charge: 0n, draw: false, feeBps: 0, usage: '{}', detail: '{}' };
    const race = ids.map(async (id) => {
      const results = await Promise.all(
        ledgers.flatMap((ledger) => [
          ledger.settle({ id, ...settle }),
          ledger.release({ id, detail: '{}' }),
          ledger.settle({ id, ...settle }),
        ]),
      );
      return results.filter(({ ok }) => ok).length;
    });
    const expired = await ledgers[0]!.expire(Date.now());
    const wins = await Promise.all(race);
    expect(wins.reduce((sum, won) => sum + won, 0) + expired.length).toBe(ids.length);
    expect(await ledgers[0]!.balance(escrowOf(account))).toEqual({ available: 1_000_000n, locked: 0n });
    expect(await audit(engine.database)).toMatchObject({ ok: true });
  });
});

// ledger-races-without-guards.test.ts is of the deep run, so a guard that moves must be noticed here.
test.each(Object.entries(GUARDS))('the guard %s stands in the code once', (_name, guard) => {
  expect(() => mutatedText(guard)).not.toThrow();
});
