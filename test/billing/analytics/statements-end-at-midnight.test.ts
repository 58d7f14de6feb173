import { expect, onTestFinished, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { readStatement } from '../../../src/billing/analytics/statement.ts';
import { UTC } from '../../../src/billing/analytics/time-zone.ts';
import { ENGINES, openEngine } from '../../support/engines.ts';

const FROM = Date.parse('2026-03-01T00:00:00Z');
const UNTIL = Date.parse('2026-04-01T00:00:00Z');

test.each(ENGINES)('a movement at midnight is in the month that begins then, on %s', async (engine) => {
  const { database, dispose } = await openEngine(engine);
  onTestFinished(dispose);
  let at = FROM - 1;
  const ledger = await createLedger({ database, now: () => at });
  const add = async (time: number, amount: bigint) => {
    at = time;
    await ledger.transfer({ id: `${time}`, from: treasuryOf('test'), to: escrowOf('acme'), amount, memo: '' });
  };
  for (const [time, amount] of [
    [FROM - 1, 1n],
    [FROM, 10n],
    [UNTIL - 1, 100n],
    [UNTIL, 1_000n],
  ] as const)
    await add(time, amount);
  const statement = await readStatement((...query) => database.query(...query), {
    account: 'acme',
    zone: UTC,
    from: FROM,
    until: UNTIL,
    callsMax: 10,
  });
  expect(statement).toMatchObject({ opening: 1n, closing: 111n, charged: 0n });
  expect(statement!.movements.map(({ amount, balance }) => [amount, balance])).toEqual([
    [10n, 11n],
    [100n, 111n],
  ]);
});
