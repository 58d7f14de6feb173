import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { earningsOf, escrowOf, treasuryOf, type Ledger } from '#billing';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { openEngine, type OpenedEngine } from '../support/engines.ts';

// An account that nobody had has no row that can be locked. Gateways that open the same ones at once, in different
// groups, must not wait for each other in a circle: PostgreSQL finds that after a second, and ends one of them.

const GATEWAYS = 3;
const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 200 : 20;
const PROVIDERS = 20;

let engine: OpenedEngine;
const ledgers: Ledger[] = [];
beforeAll(async () => {
  engine = await openEngine('postgres');
  await createPriceBook(engine.database).remember([CRASH_PRICE]);
  ledgers.push(await createLedger({ database: engine.database }));
  for (let more = 1; more < GATEWAYS; more += 1) ledgers.push(await createLedger({ database: await engine.again() }));
});
afterAll(async () => {
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  await engine.dispose();
});

test('gateways that pay the same new providers at once do not deadlock', async () => {
  const account = 'consumer';
  const amount = 10n;
  const paid = BigInt(ROUNDS * PROVIDERS * GATEWAYS) * amount;
  await ledgers[0]!.transfer({
    id: 'fund',
    from: treasuryOf('test'),
    to: escrowOf(account),
    amount: paid,
    memo: '',
  });
  const expiresAt = Date.now() + 600_000;
  const bill = {
    price: CRASH_PRICE.id,
    charge: amount,
    draw: false,
    feeBps: 0,
    usage: `{"call":${amount}}`,
    detail: '{}',
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const calls = Array.from({ length: PROVIDERS }, (_, provider) =>
      ledgers.map(async (ledger, gateway) => {
        const id = `call-${round}-${provider}-${gateway}`;
        expect(
          await ledger.lock({ id, account, amount, prices: [CRASH_PRICE.id], expiresAt, detail: '{}' }),
        ).toMatchObject({
          ok: true,
        });
        expect(await ledger.settle({ ...bill, id, provider: `new-${round}-${provider}` })).toMatchObject({ ok: true });
      }),
    );
    await Promise.all(calls.flat());
  }
  for (let round = 0; round < ROUNDS; round += 1)
    expect(await ledgers[0]!.balance(earningsOf(`new-${round}-0`))).toEqual({
      available: BigInt(GATEWAYS) * amount,
      locked: 0n,
    });
  expect((await audit(engine.database)).checks.filter(({ ok }) => !ok)).toEqual([]);
  // A server tells its figures a moment late.
  await expect
    .poll(() => deadlocks().then(({ commits }) => commits), { timeout: 30_000 })
    .toBeGreaterThan(BigInt(ROUNDS * GATEWAYS));
  expect((await deadlocks()).found).toBe(0n);
});

async function deadlocks(): Promise<{ readonly found: bigint; readonly commits: bigint }> {
  const [row] = await engine.database.query(
    adHoc('SELECT deadlocks, xact_commit FROM pg_stat_database WHERE datname = current_database()'),
  );
  return { found: row!.deadlocks as bigint, commits: row!.xact_commit as bigint };
}
