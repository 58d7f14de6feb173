import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, treasuryOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';

let world: MoneyWorld<EvmMoney>;
let gateway: MoneyGateway;
beforeAll(async () => {
  world = await openMoneyWorld();
  gateway = await world.gateway();
});
afterAll(() => world.close());

const use = (account: string) =>
  gateway.ledger.transfer({
    id: `use ${account}`,
    from: treasuryOf('other'),
    to: escrowOf(account),
    amount: 1n,
    memo: 'a first use',
  });
const send = async (payer: Payer) => {
  await world.chain.token.transfer(world.chain.walletOf(payer), world.treasury as `0x${string}`, 5n);
  await world.settle(gateway);
};

test('of an ordinary wallet or a contract, whichever the address was used as', async () => {
  const [ordinary, contract] = [await world.payer(), await world.payer()];
  const name = `${world.network}:${contract.address.toLowerCase()}`;
  await use(ordinary.account);
  await use(name);
  await send(ordinary);
  await send(contract);
  expect(await world.available(escrowOf(ordinary.account))).toBe(6n);
  expect(await world.available(escrowOf(name))).toBe(6n);
});

// Anybody can make an account of the other name, where nobody could ever get at it, by sending it a little.
test('where the address was used as both it is nobody’s until its wallet claims it', async () => {
  const payer = await world.payer();
  const name = `${world.network}:${payer.address.toLowerCase()}`;
  await use(payer.account);
  await use(name);
  await send(payer);
  expect([await world.available(escrowOf(payer.account)), await world.available(escrowOf(name))]).toEqual([1n, 1n]);
  expect(await gateway.chains.deposits.attribute(payer.address, name, world.network)).toHaveLength(1);
  expect(await world.available(escrowOf(name))).toBe(6n);
});
