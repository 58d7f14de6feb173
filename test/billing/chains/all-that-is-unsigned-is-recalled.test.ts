import { expect, onTestFinished, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf, findTransfer, treasuryOf } from '#billing';
import { MICRO_USD_MAX } from '#billing/amounts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { outgoingOf } from '../../../src/billing/chains/books.ts';
import { createWithdrawals } from '../../../src/billing/chains/withdrawals.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';

const NETWORK = 'eip155:1';
const SOURCE = escrowOf('somebody');
const COUNT = 130;

test('however many withdrawals wait, also what another gateway did not come to give back', async () => {
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database });
  onTestFinished(() => ledger.close());
  const rows = createWithdrawalRows(database, { now: Date.now });
  const withdrawals = createWithdrawals({
    rows,
    ledger,
    transferOf: (id) => findTransfer(database, id),
    chainOf: () => null,
    policyOf: () => ({ minimum: 1n, dailyMax: MICRO_USD_MAX }),
    haltOf: async () => null,
    unfinal: async () => true,
    paidIn: async () => MICRO_USD_MAX,
    now: Date.now,
  });
  await ledger.transfer({ id: 'comes', from: treasuryOf(NETWORK), to: SOURCE, amount: BigInt(COUNT), memo: 'comes' });
  for (let index = 0; index < COUNT; index += 1) {
    const id = `w${index}`;
    await rows.insert(
      { id, network: NETWORK, account: 'somebody', source: SOURCE, address: 'there', amount: 1n, handedOut: false },
      0,
    );
    await withdrawals.carryOn((await rows.find(id))!);
  }
  expect((await ledger.balance(SOURCE))?.available).toBe(0n);
  // It dies between these two.
  await rows.move('w0', 'queued', 'returning', Date.now() + 60_000, 'undone');
  await withdrawals.recall(SOURCE, 'undone');
  expect((await ledger.balance(SOURCE))?.available).toBe(BigInt(COUNT));
  expect((await ledger.balance(outgoingOf(NETWORK)))?.available).toBe(0n);
  expect(await rows.unsigned(SOURCE)).toEqual([]);
});
