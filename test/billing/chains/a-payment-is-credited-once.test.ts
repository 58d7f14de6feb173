import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';
import { until } from '../../support/cluster.ts';

const TIMES = process.env['TOLLGATE_DEEP'] === '1' ? 500 : 150;

let world: MoneyWorld<EvmMoney>;
beforeAll(async () => {
  world = await openMoneyWorld('postgres');
});
afterAll(() => world.close());

test('the same payment sent many times at once to three gateways is credited once', async () => {
  const gateways = [
    await world.gateway(),
    await world.gateway({ database: await world.again() }),
    // It answers at once that the payment is under way, as all do on a machine that is too busy.
    await world.gateway({ database: await world.again(), waitMs: 1 }),
  ];
  const payer = await world.payer();
  const { payment } = await gateways[0]!.sign(payer, 5_000_000n);
  const owner = { account: payer.account, request: null };
  const deposits = await Promise.all(
    Array.from({ length: TIMES }, (_, index) => gateways[index % 3]!.chains.deposits.take(payment, owner)),
  );
  for (const { state } of deposits) expect(['received', 'crediting', 'credited']).toContain(state);
  // Whoever waited in vain was told to send the same payment again.
  for (const { chains } of gateways)
    await until(async () => (await chains.deposits.take(payment, owner)).state === 'credited', 'it is credited');
  expect(await world.available(escrowOf(payer.account))).toBe(5_000_000n);
  expect(await world.balanceOf(payer.address)).toBe(95_000_000n);
  await world.settle(gateways[0]);
  expect(await world.available(escrowOf(payer.account))).toBe(5_000_000n);
  for (const gateway of gateways) await gateway.close();
});
