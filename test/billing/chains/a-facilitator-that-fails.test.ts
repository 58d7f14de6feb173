import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { atThisLoad } from '../../support/at-this-load.ts';
import { startFacilitator, type FacilitatorMode, type TestFacilitator } from '../../support/chain/facilitator.ts';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const ROUNDS = DEEP ? 5 : 1;
const AT_ONCE = DEEP ? 10 : 1;
const PAID = 5_000_000n;

let world: MoneyWorld<EvmMoney>;
let facilitator: TestFacilitator;
beforeAll(async () => {
  world = await openMoneyWorld();
  facilitator = await startFacilitator(world.chain.token, world.chain.walletOf(await world.payer()));
});
afterAll(async () => {
  await facilitator.stop();
  await world.close();
});

/** Whether the payment is on the chain after the first attempt, whatever was said of it. */
const MODES: Readonly<Record<FacilitatorMode, boolean>> = {
  settles: true,
  'hangs-before': false,
  'hangs-after': true,
  '500-before': false,
  '500-after': true,
  lies: false,
  denies: true,
  'wrong-amount': false,
};

/** By day those whose end does not wait for a second look. */
const BY_DAY = ['settles', 'hangs-after', '500-after', 'denies', 'lies'];
const asked = Object.entries(MODES).filter(([mode]) => DEEP || BY_DAY.includes(mode));

test.each(asked)('a facilitator that %s: what arrives is credited, once, and nothing else', async (mode, arrives) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const gateway = await world.gateway({
      facilitator: facilitator.url,
      waitMs: atThisLoad(400),
      timeoutMs: atThisLoad(300),
    });
    const taken = await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const payer = await world.payer();
        const { payment } = await gateway.sign(payer, PAID);
        facilitator.mode = mode as FacilitatorMode;
        const deposit = await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
        return { payer, payment, deposit };
      }),
    );
    for (const { payer, deposit } of taken) {
      if (!arrives) expect(deposit.state).toBe('received');
      if (!arrives) expect(await world.available(escrowOf(payer.account))).toBe(0n);
      if (mode === 'settles') expect(deposit.state).not.toBe('received');
    }
    // It comes to its senses, and is asked again for what is open.
    facilitator.mode = 'settles';
    await world.settle(gateway);
    for (const { payer, payment } of taken) {
      expect((await gateway.chains.depositRows.find(payment.id))!.state).toBe('final');
      expect(await world.available(escrowOf(payer.account))).toBe(PAID);
      expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID);
    }
    await gateway.close();
  }
});
