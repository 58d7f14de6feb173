import { afterAll, expect, test } from 'vitest';
import { audit, createLedger } from '#billing/compose';
import { findTransfer } from '#billing';
import { MICRO_USD_MAX } from '#billing/amounts';
import { createActRows } from '../../../src/billing/chains/act-rows.ts';
import { createTreasuryActs } from '../../../src/billing/chains/treasury-acts.ts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { createWithdrawals } from '../../../src/billing/chains/withdrawals.ts';
import { openEngine } from '../../support/engines.ts';

const { database, dispose } = await openEngine('sqlite');
const ledger = await createLedger({ database });
afterAll(async () => {
  const report = await audit(database);
  await ledger.close();
  await dispose();
  expect(report.ok, JSON.stringify(report.checks)).toBe(true);
});

const never = (): never => {
  throw new Error('not asked for here');
};

test('a move that nobody signed and that is on its way back is answered as given back', async () => {
  const rows = createActRows(database, { now: Date.now });
  const withdrawalRows = createWithdrawalRows(database, { now: Date.now });
  const transferOf = (id: string) => findTransfer(database, id);
  const withdrawals = createWithdrawals({
    rows: withdrawalRows,
    ledger,
    transferOf,
    chainOf: () => null,
    policyOf: () => ({ minimum: 1n, dailyMax: MICRO_USD_MAX }),
    haltOf: async () => null,
    unfinal: async () => false,
    paidIn: never,
    now: Date.now,
  });
  const acts = createTreasuryActs({
    rows,
    ledger,
    transferOf,
    compare: never,
    withdrawals,
    withdrawalRows,
    deposits: { attributeOne: never },
    depositRows: { find: never },
    chainOf: () => null,
    moveToOf: () => [],
    onProblem: () => {},
  });
  const network = 'eip155:1';
  await acts.begin({
    id: 'move',
    kind: 'move',
    network,
    amount: 5n,
    bearer: null,
    toNetwork: network,
    address: 'nowhere',
    sender: null,
    feeMax: 0n,
    reference: 'a move',
  });
  expect(await rows.find('move')).toMatchObject({ state: 'sending' });
  // Its chain cannot pay the address. The gateway that found so has died.
  expect(await withdrawalRows.move('move', 'queued', 'returning', Date.now(), 'nowhere cannot be paid')).toBe(true);
  const givenBack = { state: 'refused', reason: 'nowhere cannot be paid' };
  expect(await acts.cancel('move')).toMatchObject(givenBack);
  expect(await acts.cancel('move')).toMatchObject(givenBack);
  expect((await ledger.balance('treasury:transit'))!.available).toBe(0n);
});
