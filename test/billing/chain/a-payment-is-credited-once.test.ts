import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';

let world: MoneyWorld<EvmMoney>;
beforeAll(async () => {
  world = await openMoneyWorld('postgres');
});
afterAll(() => world.close());

test('the same payment sent many times at once to three gateways is credited once', async () => {
  const gateways = [
    await world.gateway(),
    await world.gateway({ database: await world.again() }),
    await world.gateway({ database: await world.again() }),
  ];
  const payer = await world.payer();
  const { payment } = await gateways[0]!.sign(payer, 5_000_000n);
  const owner = { account: payer.account, request: null };
  const deposits = await Promise.all(
    Array.from({ length: 500 }, (_, index) => gateways[index % 3]!.chains.deposits.take(payment, owner)),
  );
  expect(new Set(deposits.map(({ state }) => state))).toEqual(new Set(['credited']));
  expect(await world.available(escrowOf(payer.account))).toBe(5_000_000n);
  expect(await world.balanceOf(payer.address)).toBe(95_000_000n);
  await world.settle(gateways[0]);
  expect(await world.available(escrowOf(payer.account))).toBe(5_000_000n);
  for (const gateway of gateways) await gateway.close();
});
