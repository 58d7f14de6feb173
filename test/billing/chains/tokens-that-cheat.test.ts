import type { Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { PaymentProblem } from '#chains';
import { deployEvmToken, HOSTILE_MODES, type HostileMode } from '../../support/chain/evm-token.ts';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 1;
const PAID = 5_000_000n;

let world: MoneyWorld<EvmMoney>;
beforeAll(async () => {
  world = await openMoneyWorld('sqlite', { token: { hostile: true } });
});
afterAll(() => world.close());

test.each(HOSTILE_MODES)(
  'a token that %s: what reaches the treasury is credited, and nothing else',
  async (mode: HostileMode) => {
    const gateway = await world.gateway({ waitMs: 300 });
    for (let round = 0; round < ROUNDS; round += 1) {
      const payer = await world.payer();
      const before = await world.balanceOf(world.treasury);
      const { payment } = await gateway.sign(payer, PAID);
      await world.chain.token.setMode(mode);
      await gateway.chains.deposits.take(payment, { account: payer.account, request: null }).catch((error: unknown) => {
        if (!(error instanceof PaymentProblem)) throw error;
      });
      await world.chain.token.setMode('honest');
      await world.finalize();
      await gateway.chains.audit();
      await world.finalize();
      await gateway.chains.audit();
      const arrived = (await world.balanceOf(world.treasury)) - before;
      expect(await world.available(escrowOf(payer.account))).toBe(arrived);
    }
    const [reserves] = await gateway.chains.audit();
    expect(reserves!.reserves!.held).toBe(reserves!.reserves!.booked);
    expect(reserves!.reserves!.held).toBe(await world.balanceOf(world.treasury));
    await gateway.close();
  },
);

test('another token of the same name is not taken for the asset', async () => {
  const gateway = await world.gateway();
  const fake = await deployEvmToken(world.chain.anvil);
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer(0n);
    await fake.mint(payer.address as Hex, 100_000_000n);
    const terms = await gateway.chains.chain(world.network)!.requirements(PAID, null);
    const signed = await fake.authorize(world.chain.walletOf(payer), { to: world.treasury as Hex, value: PAID });
    const chain = gateway.chains.chain(world.network)!;
    expect(() => chain.read({ x402Version: 2, accepted: { ...terms, asset: fake.address }, payload: signed })).toThrow(
      PaymentProblem,
    );
    const payment = chain.read({ x402Version: 2, accepted: terms, payload: signed });
    await expect(chain.verify(payment)).rejects.toThrow(PaymentProblem);
    // Sent all the same, it moves what nobody here asks for.
    await fake.carryOut(signed);
    await world.finalize();
    await gateway.chains.audit();
    expect(await world.available(escrowOf(payer.account))).toBe(0n);
  }
  await gateway.close();
});
