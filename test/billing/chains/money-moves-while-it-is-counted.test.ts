import { expect, onTestFinished, test } from 'vitest';
import { createLedger } from '#billing/compose';
import { findTransfer, treasuryOf } from '#billing';
import { MICRO_USD_MAX } from '#billing/amounts';
import type { Chain } from '../../../src/billing/chains/chain.ts';
import { createChainRows } from '../../../src/billing/chains/chain-rows.ts';
import { createTreasury } from '../../../src/billing/chains/treasury.ts';
import { createWithdrawalRows } from '../../../src/billing/chains/withdrawal-rows.ts';
import { outgoingOf } from '../../../src/billing/chains/books.ts';
import { createWithdrawals } from '../../../src/billing/chains/withdrawals.ts';
import { openTestDatabase } from '../../gateway/test-database.ts';

// A treasury of 100 that pays 1 in every block.

const NETWORK = 'eip155:1';
const signed = { text: 'signed', transaction: null };

async function openBooks() {
  const database = await openTestDatabase('sqlite');
  const ledger = await createLedger({ database });
  onTestFinished(() => ledger.close());
  const rows = createWithdrawalRows(database, { now: Date.now });
  const chainRows = createChainRows(database, { now: Date.now });
  const asked: string[] = [];
  const world = { height: 0n, lost: false };
  const pay = async (): Promise<void> => {
    const id = `w${world.height + 1n}`;
    await ledger.transfer({
      id: `in-${id}`,
      from: treasuryOf('other'),
      to: outgoingOf(NETWORK),
      amount: 1n,
      memo: 'asked for',
    });
    await rows.insert(
      { id, network: NETWORK, account: 'a', source: 'escrow:a', address: 'there', amount: 1n, handedOut: false },
      0,
    );
    await rows.move(id, 'requested', 'debited', 0);
    await rows.move(id, 'debited', 'queued', 0);
    await rows.sign(id, signed);
    if (!world.lost) world.height += 1n;
  };
  const chain = {
    network: NETWORK,
    asset: 'asset',
    treasury: 'treasury',
    incoming: async () => ({ events: [], cursor: `${world.height}`, height: world.height, more: false }),
    balanceAt: async (cursor: string) => 100n - BigInt(cursor),
    findPayout: async ({ id }: { readonly id: string }) =>
      world.lost
        ? { state: 'lost', reason: 'never' }
        : { state: 'paid', transaction: id, final: true, height: BigInt(id.slice(1)) },
    sign: async () => (asked.push('sign'), signed),
    send: async () => (asked.push('send'), { transaction: null }),
  } as unknown as Chain;
  const withdrawals = createWithdrawals({
    rows,
    ledger,
    transferOf: (id) => findTransfer(database, id),
    chainOf: () => chain,
    policyOf: () => ({ minimum: 1n, dailyMax: MICRO_USD_MAX }),
    haltOf: async () => null,
    unfinal: async () => false,
    paidIn: async () => MICRO_USD_MAX,
    now: Date.now,
  });
  const treasury = createTreasury({
    chain,
    rows: chainRows,
    ledger,
    deposits: { arrived: async () => {} },
    withdrawals: {
      async pollSigned(network) {
        await withdrawals.pollSigned(network);
        // While it looked one more has become final, and another gateway has read on.
        await pay();
        const book = (await chainRows.find(NETWORK))!;
        await chainRows.moveCursor(NETWORK, book.cursor, `${world.height}`, world.height);
      },
    },
    handoverCare: { empty: async () => {}, isUnderWay: async () => false },
    onProblem() {},
    signal: new AbortController().signal,
  });
  await treasury.open();
  return { treasury, pay, world, asked, halted: async () => (await chainRows.find(NETWORK))!.halted };
}

test('a payout that becomes final while payouts are looked at is no difference', async () => {
  const { treasury, pay, halted } = await openBooks();
  await pay();
  const reserves = await treasury.compare();
  expect(reserves!.held).toBe(reserves!.booked);
  expect(await halted()).toBeNull();
});

test('counting money neither signs nor sends', async () => {
  const { treasury, pay, world, asked } = await openBooks();
  world.lost = true;
  await pay();
  await treasury.compare();
  expect(asked).toEqual([]);
});
