import { afterAll, beforeAll, expect, test } from 'vitest';
import { earningsOf, treasuryOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyGateway, type MoneyWorld } from '../../support/chain/money-world.ts';

let world: MoneyWorld<EvmMoney>;
let gateway: MoneyGateway;
beforeAll(async () => {
  world = await openMoneyWorld();
  gateway = await world.gateway();
});
afterAll(() => world.close());

// What was earned of money that came in over another chain.
test('signs nothing: the withdrawal waits where it can be canceled, and goes out when the money is there', async () => {
  const provider = await world.payer(0n);
  const source = earningsOf('provider');
  await gateway.ledger.transfer({
    id: 'elsewhere',
    from: treasuryOf('eip155:1'),
    to: source,
    amount: 10n,
    memo: 'earned',
  });
  const asked = {
    network: world.network,
    account: provider.account,
    source,
    address: provider.address,
    amount: 5n,
    handedOut: false,
  };
  await gateway.chains.withdrawals.request({ ...asked, id: 'first' });
  await gateway.chains.withdrawals.request({ ...asked, id: 'second' });
  const stateOf = async (id: string) => (await gateway.chains.withdrawalRows.find(id))!;
  await expect.poll(async () => (await stateOf('first')).looks, { timeout: 60_000 }).toBeGreaterThan(1);
  expect((await stateOf('first')).state).toBe('queued');
  expect(await gateway.chains.withdrawals.cancel('second')).toMatchObject({ state: 'returned' });
  const purse = await world.payer();
  await world.chain.token.transfer(world.chain.walletOf(purse), world.treasury as `0x${string}`, 5n);
  await world.settle(gateway);
  expect((await stateOf('first')).state).toBe('paid');
  expect(await world.balanceOf(provider.address)).toBe(5n);
});
