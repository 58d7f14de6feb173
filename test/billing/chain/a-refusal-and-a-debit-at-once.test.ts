import { expect, onTestFinished, test } from 'vitest';
import { createLedger, escrowOf, MICRO_USD_MAX, treasuryOf } from '#billing';
import { createWithdrawalRows } from '../../../src/chains/withdrawal-rows.ts';
import { outgoingOf } from '../../../src/chains/withdrawal-payout.ts';
import { createWithdrawals } from '../../../src/chains/withdrawals.ts';
import { ENGINES, openTestDatabase } from '../../gateway/test-database.ts';

const NETWORK = 'eip155:1';
const SOURCE = escrowOf('somebody');

test.each(ENGINES)(
  'a withdrawal that one gateway refuses while another takes the money is given back (%s)',
  async (engine) => {
    const database = await openTestDatabase(engine);
    const ledger = await createLedger({ database });
    onTestFinished(() => ledger.close());
    const rows = createWithdrawalRows(database, { now: Date.now });
    const gateway = (transfer: typeof ledger.transfer) =>
      createWithdrawals({
        rows,
        ledger: { transfer, balance: ledger.balance },
        chainOf: () => null,
        policyOf: () => ({ minimum: 1n, dailyMax: MICRO_USD_MAX }),
        haltOf: async () => null,
        unfinal: async () => false,
        paidIn: async () => MICRO_USD_MAX,
        now: Date.now,
      });
    await rows.insert(
      {
        id: 'one',
        network: NETWORK,
        account: 'somebody',
        source: SOURCE,
        address: 'there',
        amount: 5n,
        handedOut: false,
      },
      0,
    );
    const asked = (await rows.find('one'))!;
    const early = gateway(ledger.transfer);
    // Between what it asks the ledger and what it writes down the first one is overtaken.
    const late = gateway(async (request) => {
      await ledger.transfer({ id: 'comes', from: treasuryOf(NETWORK), to: SOURCE, amount: 5n, memo: 'comes' });
      const taken = await ledger.transfer(request);
      await gateway(async () => ({ ok: false, reason: 'insufficient', available: 0n })).carryOn(asked);
      return taken;
    });
    await late.carryOn(asked);
    await early.carryOn((await rows.find('one'))!);
    expect((await rows.find('one'))!.state).toBe('returned');
    expect((await ledger.balance(SOURCE))?.available).toBe(5n);
    expect((await ledger.balance(outgoingOf(NETWORK)))?.available).toBe(0n);
  },
);
