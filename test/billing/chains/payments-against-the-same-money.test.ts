import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';

const OPEN_MAX = 32;

let world: MoneyWorld<EvmMoney>;
beforeAll(async () => {
  world = await openMoneyWorld();
});
afterAll(() => world.close());

// All would succeed when they are verified, and all but one fail on the chain, where whoever gave them to it pays
// for them.
test('of what a wallet signs against the same money only so many are given to the chain at once', async () => {
  const gateway = await world.gateway({ waitMs: 50 });
  const payer = await world.payer(1_000_000n);
  const signed = [];
  for (let index = 0; index < OPEN_MAX + 8; index += 1) signed.push((await gateway.sign(payer, 1_000_000n)).payment);
  await world.chain.anvil.setAutomine(false);
  const taken = await Promise.allSettled(
    signed.map((payment) => gateway.chains.deposits.take(payment, { account: payer.account, request: null })),
  );
  await world.chain.anvil.setAutomine(true);
  const refused = taken.filter((one) => one.status === 'rejected');
  expect(refused.map(({ reason }) => (reason as Error).message)).toEqual(
    Array.from({ length: 8 }, () => expect.stringContaining('are pending on')),
  );
  await world.chain.anvil.mine(1);
  expect(
    Number(await world.chain.anvil.rpc('eth_getTransactionCount', [world.treasury, 'latest'])),
  ).toBeLessThanOrEqual(OPEN_MAX);
  await expect.poll(() => world.available(escrowOf(payer.account)), { timeout: 60_000 }).toBe(1_000_000n);
  // Others are not concerned.
  const other = await world.payer();
  expect(
    await gateway.chains.deposits.take((await gateway.sign(other, 5n)).payment, {
      account: other.account,
      request: null,
    }),
  ).toBeDefined();
});
