import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { solanaMoney, type SolanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld } from '../../support/chain/money-world.ts';

const MINE = 'tollgate:local:mine';

let world: MoneyWorld<SolanaMoney>;
let gateway: MoneyGateway;
beforeAll(async () => {
  world = await openMoneyWorldOn(await solanaMoney());
  gateway = await world.gateway();
});
afterAll(() => world.close());

test('whom a payer signed it for is credited, also where whoever brings it leaves that out of the terms', async () => {
  const chain = gateway.chains.chain(world.network)!;
  const payer = await world.payer();
  const payload = await payer.sign(await chain.requirements(5n, MINE));
  const { memo, ...extra } = payload.accepted.extra;
  expect(memo).toBe(MINE);
  const found = chain.read({ ...payload, accepted: { ...payload.accepted, extra } });
  for (const account of ['tollgate:local:thief', payer.account])
    await expect(gateway.chains.deposits.take(found, { account, request: null })).rejects.toThrow(
      `for account ${MINE}, not for this account`,
    );
  await gateway.chains.deposits.take(found, { account: MINE, request: null });
  await world.settle(gateway);
  expect(await world.available(escrowOf(MINE))).toBe(5n);
});

test('a memo that names no account says nothing', async () => {
  const chain = gateway.chains.chain(world.network)!;
  const payer = await world.payer();
  const payment = chain.read(await payer.sign(await chain.requirements(5n, 'order 17')));
  expect(payment.memo).toBe('order 17');
  expect(await gateway.chains.deposits.take(payment, { account: payer.account, request: null })).toMatchObject({
    account: payer.account,
  });
});
