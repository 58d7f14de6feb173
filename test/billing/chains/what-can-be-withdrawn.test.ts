import { afterAll, beforeAll, expect, test } from 'vitest';
import { escrowOf, findTransfer, OPERATOR, OPERATOR_TREASURY } from '#billing';
import { evmMoney, type EvmMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyGateway, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';

const OPENING = 7_000_000n;
const PAID = 5_000_000n;

let world: MoneyWorld<EvmMoney>;
let gateway: MoneyGateway;
beforeAll(async () => {
  const chain = await evmMoney();
  // There before the books begin.
  await chain.mint(chain.treasury, OPENING);
  await chain.finalize();
  world = await openMoneyWorldOn(chain);
  gateway = await world.gateway();
});
afterAll(() => world.close());

const ask = (payer: Payer, id: string, amount: bigint, handedOut = false) =>
  gateway.chains.withdrawals.request({
    id,
    network: world.network,
    account: payer.account,
    source: escrowOf(payer.account),
    address: payer.address,
    amount,
    handedOut,
  });
const fund = async (payer: Payer) => {
  const { payment } = await gateway.sign(payer, PAID);
  await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
  await world.settle(gateway);
};

test('what the treasury held before the books began is the operator’s own', async () => {
  expect(await world.available(OPERATOR_TREASURY)).toBe(OPENING);
  await world.settle(gateway);
});

test('credit that the operator gave is spent here, and never goes out over a chain', async () => {
  const payer = await world.payer();
  const source = escrowOf(payer.account);
  await gateway.ledger.transfer({
    id: 'gift',
    from: OPERATOR_TREASURY,
    to: source,
    amount: 3_000_000n,
    memo: 'a gift',
  });
  await expect(ask(payer, 'of-a-gift', 1n)).rejects.toMatchObject({
    code: 'insufficient_balance',
    message: /Only money that was deposited over a chain .*: 0 USDC/,
  });
  await fund(payer);
  await expect(ask(payer, 'too-much', PAID + 1n)).rejects.toMatchObject({ code: 'insufficient_balance' });
  expect((await ask(payer, 'most', 4_000_000n)).state).toBe('queued');
  await expect(ask(payer, 'again', 1_000_001n)).rejects.toMatchObject({ code: 'insufficient_balance' });
  // Given back, it can be asked for again.
  expect((await gateway.chains.withdrawals.cancel('most'))?.reason).toBe('Canceled');
  expect((await ask(payer, 'all', PAID)).state).toBe('queued');
  await world.settle(gateway);
  expect(await world.balanceOf(payer.address)).toBe(100_000_000n);
  expect(await world.available(source)).toBe(3_000_000n);
});

test('a withdrawal of what was spent is refused and leaves no trace in the books', async () => {
  const payer = await world.payer();
  await fund(payer);
  const from = escrowOf(payer.account);
  await gateway.ledger.transfer({ id: 'spent', from, to: 'earnings:somebody', amount: PAID - 1n, memo: 'a call' });
  for (const id of ['spent-1', 'spent-2']) {
    await expect(ask(payer, id, PAID)).rejects.toMatchObject({
      code: 'insufficient_balance',
      message: 'Insufficient balance: The balance is 0.000001 USDC',
      param: 'amount',
    });
    expect(await gateway.chains.withdrawalRows.find(id)).toBeNull();
    expect(await findTransfer(world.database, `withdrawal:${id}`)).toBeNull();
  }
  await world.settle(gateway);
});

test('what the operator sends to the treasury himself is his own, once he says so', async () => {
  const purse = await world.payer();
  const before = await world.available(OPERATOR_TREASURY);
  await world.chain.token.transfer(world.chain.walletOf(purse), world.treasury as `0x${string}`, 2_000_000n);
  await world.settle(gateway);
  expect(await world.available('suspense')).toBe(2_000_000n);
  const [row] = await gateway.chains.depositRows.suspense(null, 10);
  expect(await gateway.chains.deposits.attributeOne(row!.id, OPERATOR)).toMatchObject({ account: OPERATOR });
  expect(await world.available('suspense')).toBe(0n);
  expect(await world.available(OPERATOR_TREASURY)).toBe(before + 2_000_000n);
  await world.settle(gateway);
});

test('a withdrawal that its owner was to submit is submitted by the gateway when asked, and paid once', async () => {
  const payer = await world.payer();
  await fund(payer);
  expect(await gateway.chains.withdrawals.submit((await ask(payer, 'mine', 1_000_000n, true)).id)).toMatchObject({
    handedOut: false,
  });
  await world.settle(gateway);
  expect((await gateway.chains.withdrawalRows.find('mine'))!.state).toBe('paid');
  expect(await gateway.chains.withdrawals.submit('mine')).toBeNull();
  expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID + 1_000_000n);
});
