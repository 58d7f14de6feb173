import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { ChainUnavailable } from '#chains';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyGateway, type MoneyWorld } from '../../support/chain/money-world.ts';

// What the owner of a balance asks of both gateways at once moves on the chain once, and never beyond a limit.

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 2;
const CROWD = 12;
const FUNDED = 5_000_000n;
const AMOUNT = 1_000_000n;
/** Three withdrawals, and not four. */
const DAILY = 3_500_000n;

let world: MoneyWorld<EvmMoney>;
let gateways: readonly [MoneyGateway, MoneyGateway];
beforeAll(async () => {
  world = await openMoneyWorld('postgres');
  const policy = { withdrawalDailyMax: DAILY };
  gateways = [await world.gateway({ policy }), await world.gateway({ policy, database: await world.again() })];
});
afterAll(() => world.close());

async function funded() {
  const payer = await world.payer(FUNDED);
  const { payment } = await gateways[0].sign(payer, FUNDED);
  await gateways[0].chains.deposits.take(payment, { account: payer.account, request: null });
  await world.settle(gateways[0]);
  const source = escrowOf(payer.account);
  const ask = (index: number, id: string, amount = AMOUNT) =>
    gateways[index % 2]!.chains.withdrawals.request({
      id,
      network: world.network,
      account: payer.account,
      source,
      address: payer.address,
      amount,
      handedOut: false,
    });
  /** What is on the chain and what is left in the balance, when nothing is under way and the books are audited. */
  const outcome = async () => {
    await world.settle(gateways[0]);
    return { paid: await world.balanceOf(payer.address), left: await world.available(source) };
  };
  return { account: payer.account, ask, outcome };
}

const isDone = (each: PromiseSettledResult<unknown>) => each.status === 'fulfilled';

test.each([
  ['a part of what there is', AMOUNT],
  // A second withdrawal of as much would be refused.
  ['all that a day allows', DAILY],
])('one idempotency key withdraws %s once, and everybody is told of it', async (_what, amount) => {
  for (let round = 0; round < 2 * ROUNDS; round += 1) {
    const { ask, outcome } = await funded();
    const id = `same-${amount}-${round}`;
    const told = await Promise.all(Array.from({ length: CROWD }, (_, index) => ask(index, id, amount)));
    expect(new Set(told.map((each) => each.id))).toEqual(new Set([id]));
    expect(await outcome()).toEqual({ paid: amount, left: FUNDED - amount });
  }
});

test('one idempotency key with two amounts withdraws one of them, and the other is a conflict', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { ask, outcome } = await funded();
    const amounts = [AMOUNT, 2n * AMOUNT];
    const asked = await Promise.allSettled(amounts.map((amount, index) => ask(index, `two-${round}`, amount)));
    expect(asked.filter(isDone)).toHaveLength(1);
    expect(asked.find((each) => !isDone(each))).toMatchObject({ reason: { code: 'idempotency_conflict' } });
    const paid = amounts[asked.findIndex(isDone)]!;
    expect(await outcome()).toEqual({ paid, left: FUNDED - paid });
  }
});

test('many keys take no more than a day allows, and what is told to be taken is paid', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { ask, outcome } = await funded();
    const asked = await Promise.allSettled(
      Array.from({ length: CROWD }, (_, index) => ask(index, `day-${round}-${index}`)),
    );
    const paid = AMOUNT * BigInt(asked.filter(isDone).length);
    expect(paid).toBeLessThanOrEqual(DAILY);
    expect(await outcome()).toEqual({ paid, left: FUNDED - paid });
  }
});

test('a cancellation at one gateway, while the other carries on, gives all back or nothing', async () => {
  for (let round = 0; round < 3 * ROUNDS; round += 1) {
    const { ask, outcome } = await funded();
    const id = `cancel-${round}`;
    const withdrawal = await ask(0, id);
    // Who sends it second is told that it would not succeed now.
    const carryOn = (at: 0 | 1) =>
      gateways[at].chains.withdrawals.carryOn(withdrawal).catch((error: unknown) => {
        if (!(error instanceof ChainUnavailable)) throw error;
      });
    const [canceled] = await Promise.all([
      gateways[1].chains.withdrawals.cancel(id),
      carryOn(0),
      ...(round % 2 === 0 ? [carryOn(1)] : []),
    ]);
    const paid = canceled === null ? AMOUNT : 0n;
    expect(await outcome()).toEqual({ paid, left: FUNDED - paid });
  }
});
