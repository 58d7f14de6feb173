import { expect, onTestFinished, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { createChainRows } from '../../../src/billing/chains/chain-rows.ts';
import { openChains } from '../../../src/billing/chains/chains.ts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { outgoingOf } from '../../../src/billing/chains/books.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';

const NETWORK = 'eip155:1';
const SOURCE = escrowOf('somebody');

test('what was taken for a withdrawal over it and is not signed can be had back', async () => {
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database });
  onTestFinished(() => ledger.close());
  const rows = createWithdrawalRows(database, { now: Date.now });
  await createChainRows(database, { now: Date.now }).insert({
    network: NETWORK,
    asset: 'a',
    treasury: 't',
    opening: 0n,
    cursor: '0',
    height: 0n,
  });
  await ledger.transfer({ id: 'comes', from: treasuryOf(NETWORK), to: SOURCE, amount: 9n, memo: 'comes' });
  for (const [id, state] of [
    ['taken', 'debited'],
    ['waits', 'queued'],
  ] as const) {
    await rows.insert(
      { id, network: NETWORK, account: 'somebody', source: SOURCE, address: 'there', amount: 4n, handedOut: false },
      0,
    );
    await ledger.transfer({
      id: `withdrawal:${id}`,
      from: SOURCE,
      to: outgoingOf(NETWORK),
      amount: 4n,
      memo: 'withdrawal',
    });
    await rows.move(id, 'requested', state, 0);
  }
  const chains = await openChains({
    database,
    ledger,
    chains: [],
    waitMs: 0,
    watchMs: 1_000,
    compareLateMs: 3_600_000,
    strangersMax: 0n,
    compareMs: 1_000,
    accountOfMemo: async () => null,
    namesAnother: () => false,
    onProblem() {},
    onChange() {},
    now: Date.now,
  });
  onTestFinished(() => chains.close());
  await expect.poll(async () => (await rows.find('taken'))!.state).toBe('returned');
  expect((await rows.find('waits'))!.state).toBe('queued');
  await chains.withdrawals.cancel('waits');
  expect((await rows.find('waits'))!.state).toBe('returned');
  expect((await ledger.balance(SOURCE))?.available).toBe(9n);
});
