import { afterAll, expect, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf, findTransfer } from '#billing';
import { MICRO_USD_MAX } from '#billing/amounts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { createWithdrawals } from '../../../src/billing/chains/withdrawals.ts';
import { openEngine } from '../../support/engines.ts';

const { database, dispose } = await openEngine('sqlite');
const ledger = await createLedger({ database });
afterAll(async () => {
  await ledger.close();
  await dispose();
});

test('a withdrawal that the books cannot give back is an error, and is not over', async () => {
  const rows = createWithdrawalRows(database, { now: Date.now });
  const withdrawals = createWithdrawals({
    rows,
    ledger,
    transferOf: (id) => findTransfer(database, id),
    chainOf: () => null,
    policyOf: () => ({ minimum: 1n, dailyMax: MICRO_USD_MAX }),
    haltOf: async () => null,
    unfinal: async () => false,
    paidIn: async () => MICRO_USD_MAX,
    now: Date.now,
  });
  const asked = { id: 'w', network: 'eip155:1', account: 'a', source: escrowOf('a'), address: 'there', amount: 5n };
  await rows.insert({ ...asked, handedOut: false }, 0);
  // As no path of the code does it: nothing was taken.
  expect(await rows.move('w', 'requested', 'returning', 0, 'by this test')).toBe(true);
  await expect(withdrawals.carryOn((await rows.find('w'))!)).rejects.toThrow(
    'transfer withdrawal-back:w of 0.000005 USDC is not made: outgoing:eip155:1 has 0',
  );
  expect((await rows.find('w'))!.state).toBe('returning');
});
