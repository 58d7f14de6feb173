import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 2;
const FUNDED = 5_000_000n;

let world: MoneyWorld<EvmMoney>;
beforeAll(async () => {
  world = await openMoneyWorld('postgres');
});
afterAll(() => world.close());

test('of fifty withdrawals of the whole balance, with calls that spend it at the same time, at most one is paid', async () => {
  const gateways = [await world.gateway(), await world.gateway({ database: await world.again() })] as const;
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer(FUNDED);
    const { payment } = await gateways[0].sign(payer, FUNDED);
    await gateways[0].chains.deposits.take(payment, { account: payer.account, request: null });
    await world.settle(gateways[0]);
    const source = escrowOf(payer.account);
    const withdrawals = Array.from({ length: 50 }, (_, index) =>
      gateways[index % 2]!.chains.withdrawals.request({
        id: `wd-${round}-${index}`,
        network: world.network,
        account: payer.account,
        source,
        address: payer.address,
        amount: FUNDED,
        handedOut: false,
      }).then(
        () => true,
        () => false,
      ),
    );
    const calls = Array.from({ length: 50 }, async (_, index) => {
      const { ledger } = gateways[index % 2]!;
      const id = `call-${round}-${index}`;
      const lock = {
        id,
        account: payer.account,
        amount: 400_000n,
        prices: ['price'],
        expiresAt: Date.now() + 60_000,
        detail: '{}',
      };
      if (!(await ledger.lock(lock)).ok) return 0n;
      await ledger.release({ id, detail: '{}' });
      const spend = await ledger.transfer({
        id: `spend-${id}`,
        from: source,
        to: 'earnings:somebody',
        amount: 300_000n,
        memo: 'a call',
      });
      return spend.ok ? 300_000n : 0n;
    });
    const taken = (await Promise.all(withdrawals)).filter(Boolean).length;
    const spent = (await Promise.all(calls)).reduce<bigint>((sum, amount) => sum + amount, 0n);
    expect(taken).toBeLessThanOrEqual(1);
    await world.settle(gateways[0]);
    expect(await world.balanceOf(payer.address)).toBe(taken === 1 ? FUNDED : 0n);
    expect(await world.available(source)).toBe(FUNDED - (taken === 1 ? FUNDED : 0n) - spent);
  }
});

test('of fifty withdrawals of the whole balance alone, one is paid', async () => {
  const gateway = await world.gateway();
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer(FUNDED);
    const { payment } = await gateway.sign(payer, FUNDED);
    await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
    const source = escrowOf(payer.account);
    const asked = Array.from({ length: 50 }, (_, index) =>
      gateway.chains.withdrawals.request({
        id: `alone-${round}-${index}`,
        network: world.network,
        account: payer.account,
        source,
        address: payer.address,
        amount: FUNDED,
        handedOut: false,
      }),
    );
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await world.settle(gateway);
    expect(await world.balanceOf(payer.address)).toBe(FUNDED);
    expect(await world.available(source)).toBe(0n);
  }
});
