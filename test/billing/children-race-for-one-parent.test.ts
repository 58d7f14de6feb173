import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { earningsOf, escrowOf, treasuryOf, type Ledger } from '#billing';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../support/engines.ts';
import { raceChildren } from '../support/lock-race.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const GATEWAYS = 2;

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  const ledgers: Ledger[] = [];
  beforeAll(async () => {
    engine = await openEngine(name);
    await createPriceBook(engine.database).remember([CRASH_PRICE]);
    ledgers.push(await createLedger({ database: engine.database }));
    // The embedded database has one opener: there, the gateways are one.
    for (let more = 1; name === 'postgres' && more < GATEWAYS; more += 1)
      ledgers.push(await createLedger({ database: await engine.again() }));
  });
  afterAll(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.close()));
    await engine.dispose();
  });
  const failing = async () => (await audit(engine.database)).checks.filter(({ ok }) => !ok);

  test('a lock that can lend 500 times lends exactly 500 times, however many race for it', async () => {
    const attempts = DEEP ? 500_000 : 4_000;
    const race = await raceChildren(ledgers, { width: 64, attempts, affordable: 500 });
    expect(race).toMatchObject({
      granted: 500,
      refused: attempts - 500,
      failed: 0,
      lent: 5_000n,
      locked: 5_000n,
      available: 10n * BigInt(attempts),
    });
    expect(await failing()).toEqual([]);
  });

  test('a run that calls draw on, end and begin again on all gateways is never charged above its cap', async () => {
    const account = 'busy';
    const cap = 2_000n;
    await ledgers[0]!.transfer({
      id: 'fund-busy',
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 1_000_000n,
      memo: '',
    });
    const plain = { account, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000, detail: '{}' };
    await ledgers[0]!.lock({ ...plain, id: 'busy', amount: cap + 5n, lendable: cap });
    const settlement = { price: CRASH_PRICE.id, provider: 'busy', draw: true, feeBps: 0, detail: '{}' };
    let charged = 0n;
    let refused = 0;
    const worker = async (index: number) => {
      for (let turn = 0; turn < (DEEP ? 2_000 : 60); turn += 1) {
        const id = `busy-${index}-${turn}`;
        // Another gateway may end it than began it.
        const [begins, ends] = [ledgers[turn % ledgers.length]!, ledgers[(turn + index) % ledgers.length]!];
        const { ok } = await begins.lock({ ...plain, id, parent: 'busy', amount: 40n, lendable: 30n });
        if (!ok) {
          refused += 1;
          continue;
        }
        const under = await begins.lock({ ...plain, id: `${id}-under`, parent: id, amount: 30n });
        expect(under).toMatchObject({ ok: true });
        const charges = [BigInt(turn % 3), BigInt(index % 4)] as const;
        const [outer, inner] = await Promise.all([
          turn % 5 === 0
            ? ends.release({ id, detail: '{}' })
            : ends.settle({ ...settlement, id, charge: charges[0], usage: `{"call":${charges[0]}}` }),
          begins.settle({ ...settlement, id: `${id}-under`, charge: charges[1], usage: `{"call":${charges[1]}}` }),
        ]);
        expect([outer.ok, inner.ok]).toEqual([true, true]);
        charged += (turn % 5 === 0 ? 0n : charges[0]) + charges[1];
      }
    };
    await Promise.all(Array.from({ length: 48 }, (_, index) => worker(index)));
    expect(refused).toBeGreaterThan(0);
    expect(charged).toBeLessThanOrEqual(cap);
    expect(await ledgers[0]!.balance(earningsOf('busy'))).toEqual({ available: charged, locked: 0n });
    const run = (await ledgers[0]!.find('busy'))!;
    expect(run.lent).toBeLessThanOrEqual(cap);
    expect(await failing()).toEqual([]);
    await ledgers[0]!.release({ id: 'busy', detail: '{}' });
    expect(await ledgers[0]!.balance(escrowOf(account))).toEqual({ available: 1_000_000n - charged, locked: 0n });
  });

  test('whether a parent ends before or after its children, all that was not charged is there again', async () => {
    const account = 'ending';
    await ledgers[0]!.transfer({
      id: 'fund-ending',
      from: treasuryOf('test'),
      to: escrowOf(account),
      amount: 100_000n,
      memo: '',
    });
    const plain = { account, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000, detail: '{}' };
    const runs = Array.from({ length: 60 }, (_, index) => `ending-${index}`);
    await Promise.all(runs.map((id) => ledgers[0]!.lock({ ...plain, id, amount: 1_000n, lendable: 1_000n })));
    let granted = 0;
    await Promise.all(
      runs.flatMap((run, number) => [
        ...Array.from({ length: 6 }, async (_, index) => {
          const ledger = ledgers[index % ledgers.length]!;
          const id = `${run}-${index}`;
          const { ok } = await ledger.lock({ ...plain, id, parent: run, amount: 100n });
          if (!ok) return;
          granted += 1;
          await ledgers[(index + 1) % ledgers.length]!.release({ id, detail: '{}' });
        }),
        // Some right away, some when calls are under way.
        (async () => {
          for (let turns = number % 4; turns > 0; turns -= 1)
            await ledgers[number % ledgers.length]!.release({ id: 'none', detail: '{}' });
          await ledgers[number % ledgers.length]!.release({ id: run, detail: '{}' });
        })(),
      ]),
    );
    expect(granted).toBeGreaterThan(0);
    expect(await ledgers[0]!.balance(escrowOf(account))).toEqual({ available: 100_000n, locked: 0n });
    expect(await failing()).toEqual([]);
  });
});
