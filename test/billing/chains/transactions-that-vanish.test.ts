import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf } from '#billing';
import { solanaMoney, type SolanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';
import { atThisLoad } from '../../support/at-this-load.ts';
import { whileBlocksCome } from '../../support/chain/while-blocks-come.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 1;
const PAID = 5_000_000n;
const WITHDRAWN = 2_000_000n;

let world: MoneyWorld<SolanaMoney>;
let gateway: MoneyGateway;
beforeAll(async () => {
  world = await openMoneyWorldOn(await solanaMoney());
  gateway = await world.gateway({ waitMs: 200 });
});
afterAll(() => world.close());

const take = async (payer: Payer) => {
  const { payment } = await gateway.sign(payer, PAID);
  return { payment, deposit: await gateway.chains.deposits.take(payment, { account: payer.account, request: null }) };
};
const withdraw = (payer: Payer, id: string) =>
  gateway.chains.withdrawals.request({
    id,
    network: world.network,
    account: payer.account,
    source: escrowOf(payer.account),
    address: payer.address,
    amount: WITHDRAWN,
    handedOut: false,
  });
const problems = () => `it did not come: ${gateway.problems.join('; ')}`;
const until = async (reached: () => Promise<boolean>) => {
  for (const end = performance.now() + atThisLoad(10_000); !(await reached());) {
    if (performance.now() > end) throw new Error(problems());
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
};

test('a payment whose transaction was dropped is sent again, and credited once', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer();
    world.chain.twin.faults.dropNext = 1;
    const { payment, deposit } = await take(payer);
    expect(['received', 'credited', 'final']).toContain(deposit.state);
    await until(async () => (await gateway.chains.depositRows.find(payment.id))!.state !== 'received');
    await world.settle(gateway);
    expect(await world.available(escrowOf(payer.account))).toBe(PAID);
    expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID);
  }
});

test('a payment that is dropped until it expires failed, and costs its payer nothing', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer();
    world.chain.twin.faults.dropNext = 1_000_000;
    const { payment, deposit } = await take(payer);
    expect(deposit.state).toBe('received');
    await whileBlocksCome(
      world,
      async () => (await gateway.chains.depositRows.find(payment.id))!.state === 'failed',
      problems,
    );
    world.chain.twin.faults.dropNext = 0;
    await world.settle(gateway);
    expect(await world.available(escrowOf(payer.account))).toBe(0n);
    expect(await world.balanceOf(payer.address)).toBe(100_000_000n);
    await expect(gateway.chains.deposits.take(payment, { account: payer.account, request: null })).rejects.toThrow(
      'Sign a new one',
    );
  }
});

test('a payout that is dropped until it expires is signed anew, and paid once', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer();
    await take(payer);
    await world.settle(gateway);
    const id = `vanishes-${round}`;
    world.chain.twin.faults.dropNext = 1_000_000;
    await withdraw(payer, id);
    await until(async () => (await gateway.chains.withdrawalRows.find(id))!.state === 'signed');
    const first = (await gateway.chains.withdrawalRows.find(id))!.signed!;
    await whileBlocksCome(
      world,
      async () => (await gateway.chains.withdrawalRows.find(id))!.signed!.text !== first.text,
      problems,
    );
    world.chain.twin.faults.dropNext = 0;
    await world.settle(gateway);
    const row = (await gateway.chains.withdrawalRows.find(id))!;
    expect(row.state).toBe('paid');
    expect(row.transaction).not.toBe(first.transaction);
    expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID + WITHDRAWN);
    expect(await world.available(escrowOf(payer.account))).toBe(PAID - WITHDRAWN);
  }
});

test('one payment that two gateways give to the chain at once, each as its own facilitator, is credited once', async () => {
  const other = await world.gateway({ waitMs: 2_000 });
  for (let round = 0; round < ROUNDS; round += 1) {
    const payer = await world.payer();
    const { payment } = await gateway.sign(payer, PAID);
    const owner = { account: payer.account, request: null };
    const chains = [gateway.chains.chain(world.network)!, other.chains.chain(world.network)!];
    // Both report that it is settled.
    const taken = [other.chains.deposits.take(payment, owner), gateway.chains.deposits.take(payment, owner)];
    const said = await Promise.all(chains.map((chain) => chain.submit(payment)));
    expect(said[0]!.transaction).toBe(said[1]!.transaction);
    await Promise.all(taken);
    await world.settle(other);
    expect(await world.available(escrowOf(payer.account))).toBe(PAID);
    expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID);
  }
  await other.close();
});
