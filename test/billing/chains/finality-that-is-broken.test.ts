import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import type { EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorld, type MoneyWorld } from '../../support/chain/money-world.ts';

let world: MoneyWorld<EvmMoney>;
beforeAll(async () => {
  world = await openMoneyWorld();
});
afterAll(() => world.close());

test('a chain that takes back what it had called final stops withdrawals, and says so', async () => {
  const gateway = await world.gateway();
  const payer = await world.payer();
  const { payment } = await gateway.sign(payer, 5_000_000n);
  await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
  await world.settle(gateway);
  await world.chain.anvil.reorg(5);
  await expect
    .poll(async () => (await gateway.chains.books())[0]!.halted, { interval: 20, timeout: 60_000 })
    .toContain('Finality of eip155:84532 was broken');
  const asked = {
    id: 'after',
    network: world.network,
    account: payer.account,
    source: escrowOf(payer.account),
    address: payer.address,
  };
  await expect(
    gateway.chains.withdrawals.request({ ...asked, amount: 1_000_000n, handedOut: false }),
  ).rejects.toMatchObject({
    code: 'service_unavailable',
  });
  // No difference is known then.
  const act = { id: 'difference', kind: 'write_off', network: world.network, amount: 1n, bearer: 'fees' } as const;
  const none = { toNetwork: null, address: null, sender: null, feeMax: 0n, reference: 'difference' };
  expect(await gateway.chains.acts.request({ ...act, ...none })).toMatchObject({
    state: 'refused',
    reason: expect.stringContaining('Finality of eip155:84532 was broken'),
  });
  // It does not go on by itself.
  await gateway.chains.audit();
  expect((await gateway.chains.books())[0]!.halted).not.toBeNull();
  expect(gateway.problems.filter((problem) => problem.startsWith('withdrawals are stopped'))).toHaveLength(1);
});
