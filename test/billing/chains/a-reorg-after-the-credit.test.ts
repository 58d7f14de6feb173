import { afterEach, beforeEach, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { LOSSES } from '../../../src/billing/chains/books.ts';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyGateway, type MoneyWorld } from '../../support/chain/money-world.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const DEPTHS = DEEP ? Array.from({ length: 60 }, (_, index) => (index % 12) + 1) : [12];
const PAID = 5_000_000n;

let world: MoneyWorld<EvmMoney>;
let gateway: MoneyGateway;
// Anew for each: anvil loses states when blocks are undone after some hundreds were made.
beforeEach(async () => {
  // So deep that no reorganisation of this file is of what is final.
  world = await openMoneyWorld('sqlite', { anvil: { slotsInAnEpoch: 16 } });
  gateway = await world.gateway();
});
afterEach(() => world.close());

test.each(DEPTHS)(
  'a chain that undoes %d blocks after the credit gets the payment again: it is credited once',
  async (depth) => {
    const payer = await world.payer();
    await world.chain.anvil.mine(14);
    const { payment } = await gateway.sign(payer, PAID);
    const deposit = await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
    expect(deposit.state).toBe('credited');
    if (depth > 1) await world.chain.anvil.mine(depth - 1);
    await world.chain.anvil.reorg(depth);
    expect(await world.balanceOf(payer.address)).toBe(100_000_000n);
    await world.settle(gateway);
    expect((await gateway.chains.depositRows.find(payment.id))!.state).toBe('final');
    expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID);
    expect(await world.available(escrowOf(payer.account))).toBe(PAID);
  },
);

test('a payment is credited once its chain has as many blocks on it as the operator wants', async () => {
  const careful = await world.gateway({ policy: { confirmations: 3 }, waitMs: 1_000 });
  const payer = await world.payer();
  await world.chain.anvil.mine(14);
  const { payment } = await careful.sign(payer, PAID);
  const taken = await careful.chains.deposits.take(payment, { account: payer.account, request: null });
  expect([taken.state, await world.available(escrowOf(payer.account))]).toEqual(['received', 0n]);
  await world.chain.anvil.mine(2);
  await expect
    .poll(async () => (await careful.chains.depositRows.find(payment.id))!.state, { timeout: 60_000 })
    .toBe('credited');
  expect(await world.available(escrowOf(payer.account))).toBe(PAID);
  await world.settle(careful);
});

test.each(Array.from({ length: DEEP ? 50 : 1 }, (_, index) => index + 1))(
  'what a chain undid for good is taken back as far as it is there, and the operator stands for the rest (%d)',
  async (round) => {
    const payer = await world.payer(PAID);
    const loss = await world.available(LOSSES);
    await world.chain.anvil.mine(14);
    const { payment } = await gateway.sign(payer, PAID);
    await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
    // Asked for before it was undone, and not signed while it can be.
    const asked = {
      id: `early-${round}`,
      network: world.network,
      account: payer.account,
      source: escrowOf(payer.account),
      address: payer.address,
      amount: 1_000_000n,
    };
    const withdrawal = await gateway.chains.withdrawals.request({ ...asked, handedOut: false });
    expect(withdrawal.state).toBe('queued');
    await gateway.ledger.transfer({
      id: `spent-${round}`,
      from: escrowOf(payer.account),
      to: 'earnings:somebody',
      amount: 1_500_000n,
      memo: 'spent',
    });
    await world.chain.anvil.reorg(1);
    // The wallet uses the nonce up: what it signed can never come again.
    await world.chain.token.cancel(
      world.chain.walletOf(payer),
      payment.id.slice(payment.id.lastIndexOf('/') + 1) as `0x${string}`,
    );
    await world.settle(gateway);
    expect((await gateway.chains.depositRows.find(payment.id))!.state).toBe('reversed');
    expect((await gateway.chains.withdrawalRows.find(asked.id))!.state).toBe('returned');
    expect(await world.available(escrowOf(payer.account))).toBe(0n);
    expect(await world.available(LOSSES)).toBe(loss - 1_500_000n);
    expect(await world.balanceOf(payer.address)).toBe(PAID);
  },
);
