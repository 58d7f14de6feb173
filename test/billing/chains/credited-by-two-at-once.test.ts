import { expect, onTestFinished, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf } from '#billing';
import type { Incoming } from '../../../src/billing/chains/chain.ts';
import { createDepositRows, type Deposit, type DepositRows } from '../../../src/billing/chains/deposit-rows.ts';
import { createDeposits } from '../../../src/billing/chains/deposits.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';

const NETWORK = 'eip155:1';

test('what one gateway credits for now while another sees it final is final', async () => {
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database });
  onTestFinished(() => ledger.close());
  const rows = createDepositRows(database, { now: Date.now });
  const id = `${NETWORK}/asset/payer/nonce`;
  await rows.insert(
    { id, network: NETWORK, account: 'a', payer: 'payer', amount: 5n, payment: null, request: null },
    0,
    null,
  );
  const event: Incoming = {
    id: 't:0',
    transaction: 't',
    amount: 5n,
    height: 1n,
    confirmations: 9,
    final: true,
    sender: 'payer',
    paymentId: id,
    memo: null,
  };
  // The row as it was before the other one came.
  let before: Deposit | null = await rows.find(id);
  const slow: DepositRows = {
    ...rows,
    async find(of) {
      const stale = before;
      before = null;
      return stale ?? rows.find(of);
    },
  };
  const gateway = (its: DepositRows) =>
    createDeposits({
      rows: its,
      ledger,
      chainOf: () => null,
      policyOf: () => ({ confirmations: 1, unfinalMax: 100n }),
      strangersMax: 1_000_000n,
      waitMs: 0,
      recall: async () => {},
      namesAnother: () => false,
      attribute: async () => null,
      onProblem() {},
      now: Date.now,
      signal: new AbortController().signal,
    });
  await gateway(rows).arrived({ ...event, final: false as true }, NETWORK);
  expect((await rows.find(id))!.state).toBe('credited');
  await gateway(slow).arrived(event, NETWORK);
  expect((await rows.find(id))!.state).toBe('final');
  expect((await ledger.balance(escrowOf('a')))?.available).toBe(5n);
});
