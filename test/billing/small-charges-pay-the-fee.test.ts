import { describe, expect, onTestFinished, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { earningsOf, escrowOf, FEES, treasuryOf } from '#billing';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { ENGINES, openEngine } from '../support/engines.ts';

// A fee of 5 % of 8 micro-USD is less than the least amount: it is taken of as many calls as make it come out right.

const FEE_BPS = 500;
const CALLS = 1_500;

describe.each(ENGINES)('%s', (name) => {
  test.each([
    { charge: 1n, exact: 75 },
    { charge: 8n, exact: 600 },
    { charge: 9n, exact: 675 },
    { charge: 20n, exact: 1_500 },
    { charge: 39n, exact: 2_925 },
  ])('1,500 calls of $charge micro-USD pay $exact micro-USD of fees, about', async ({ charge, exact }) => {
    const { database, dispose } = await openEngine(name);
    onTestFinished(dispose);
    await createPriceBook(database).remember([CRASH_PRICE]);
    const ledger = await createLedger({ database, now: () => 1_000 });
    const total = charge * BigInt(CALLS);
    await ledger.transfer({ id: 'fund', from: treasuryOf('test'), to: escrowOf('a'), amount: total, memo: '' });
    const lock = { account: 'a', amount: charge, prices: [CRASH_PRICE.id], expiresAt: 2_000, detail: '{}' };
    const settle = {
      charge,
      draw: false,
      price: CRASH_PRICE.id,
      provider: 'p',
      feeBps: FEE_BPS,
      usage: `{"call":${charge}}`,
      detail: '{}',
    };
    const settled = await Promise.all(
      Array.from({ length: CALLS }, async (_, n) => {
        const id = `${charge}-${n}`;
        await ledger.lock({ ...lock, id });
        return ledger.settle({ ...settle, id });
      }),
    );
    const fees = (await ledger.balance(FEES))?.available ?? 0n;
    const earned = (await ledger.balance(earningsOf('p')))?.available ?? 0n;
    expect(fees + earned).toBe(total);
    // One call pays the fee of what it was charged, rounded down or up: five deviations of 1,500 draws are the room
    // here. What is exact has none.
    const rest = (Number(charge) * FEE_BPS) % 10_000;
    const deviation = Math.sqrt(CALLS * (rest / 10_000) * (1 - rest / 10_000));
    expect(Math.abs(Number(fees) - exact)).toBeLessThanOrEqual(5 * deviation);
    const least = (charge * BigInt(FEE_BPS)) / 10_000n;
    for (const one of settled)
      expect(one.ok && [least, least + 1n].includes(one.fee) && one.fee <= one.charged).toBe(true);
    await ledger.close();
    expect((await audit(database, { overdueMs: null })).checks.filter(({ ok }) => !ok)).toEqual([]);
  });
});
