import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

/*
 * A payment that is submitted arrives once, however often and by however many gateways it is submitted.
 */

const rounds = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 1;
let world: EvmWorld;

beforeAll(async () => {
  world = await startEvmWorld();
});
afterAll(() => world.stop());

test('a payment is verified, submitted, found in a block, and final when the node says so', async () => {
  const { chain, anvil } = world;
  await chain.open();
  const payer = await world.payer();
  const payment = await world.payment(payer, 2_500_000n);
  expect(await chain.verify(payment)).toEqual({ account: `eip155:${payer.address.toLowerCase()}` });
  expect(await chain.find(payment, null)).toEqual({ state: 'open' });
  const { transaction } = await world.mined(chain.submit(payment));
  const observation = await chain.find(payment, transaction);
  expect(observation).toMatchObject({
    state: 'settled',
    event: { transaction, amount: 2_500_000n, confirmations: 1, final: false },
  });
  expect(await world.held()).toBe(2_500_000n);
  await anvil.mine(2);
  expect(await chain.find(payment, null)).toMatchObject({
    state: 'settled',
    event: { transaction, amount: 2_500_000n, confirmations: 3, final: true },
  });
});

test('with a number of blocks as finality, so many make it final', async () => {
  const chain = world.chainWith({ finality: 5 });
  const payment = await world.payment(await world.payer());
  await world.mined(chain.submit(payment));
  await world.anvil.mine(3);
  expect(await chain.find(payment, null)).toMatchObject({
    state: 'settled',
    event: { confirmations: 4, final: false },
  });
  await world.anvil.mine(1);
  expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { confirmations: 5, final: true } });
});

test('a hint that names another transaction, or none, does no harm', async () => {
  const { chain } = world;
  const payer = await world.payer();
  const [one, other] = [await world.payment(payer), await world.payment(payer)];
  const { transaction } = await world.mined(chain.submit(one));
  const { transaction: wrong } = await world.mined(chain.submit(other));
  for (const hint of [wrong, `0x${'12'.repeat(32)}`, 'nonsense', null])
    expect(await chain.find(one, hint)).toMatchObject({ state: 'settled', event: { transaction } });
});

test('gateways that submit the same payments at the same time move each once', async () => {
  const others = [world.chain, world.chainWith({}), world.chainWith({})];
  for (let round = 0; round < rounds; round++) {
    const before = await world.held();
    const payer = await world.payer();
    const payments = await Promise.all(Array.from({ length: 4 }, () => world.payment(payer)));
    await world.anvil.setAutomine(round % 2 === 1);
    await Promise.allSettled(payments.flatMap((payment) => others.map((chain) => chain.submit(payment))));
    await world.anvil.mine(1);
    await world.anvil.setAutomine(true);
    // A transaction that another one of the same nonce replaced is submitted again, as whoever looks after it does.
    for (const payment of payments)
      if ((await world.chain.find(payment, null)).state === 'open') await world.mined(world.chain.submit(payment));
    const observations = await Promise.all(payments.map((payment) => world.chain.find(payment, null)));
    expect(observations.map(({ state }) => state)).toEqual(['settled', 'settled', 'settled', 'settled']);
    expect((await world.held()) - before).toBe(4_000_000n);
    expect(await world.mined(world.chain.submit(payments[0]!))).toEqual({ transaction: null });
  }
});

test('a transaction that no block takes is given again, then replaced with higher fees, and never piles up', async () => {
  let now = Date.now();
  const chain = world.chainWith({ now: () => now });
  const payment = await world.payment(await world.payer());
  const fees = async (hash: string | null) =>
    BigInt((await world.anvil.rpc<{ maxFeePerGas: string }>('eth_getTransactionByHash', [hash])).maxFeePerGas);
  const waiting = () => world.anvil.rpc<{ pending: string }>('txpool_status').then(({ pending }) => Number(pending));
  await world.anvil.setAutomine(false);
  const first = await chain.submit(payment);
  expect(await chain.submit(payment)).toEqual(first);
  const fee = await fees(first.transaction);
  now += 30_000;
  const second = await chain.submit(payment);
  expect(second).not.toEqual(first);
  expect(await fees(second.transaction)).toBeGreaterThanOrEqual((fee * 5n) / 4n);
  expect(await waiting()).toBe(1);
  // However long: at most ten times.
  for (let again = 0; again < 20; again++) {
    now += 30_000;
    await chain.submit(payment);
  }
  expect(await waiting()).toBe(1);
  const last = await chain.submit(payment);
  expect(await fees(last.transaction)).toBeLessThanOrEqual(fee * 10n);
  await world.anvil.setAutomine(true);
  await world.anvil.mine(1);
  expect(await chain.find(payment, first.transaction)).toMatchObject({
    state: 'settled',
    event: { transaction: last.transaction },
  });
});

test('what blocks the queue of transactions is replaced by who comes next', async () => {
  let now = Date.now();
  const [one, other] = [world.chainWith({}), world.chainWith({ now: () => now })];
  const payer = await world.payer();
  const [stuck, next] = [await world.payment(payer), await world.payment(payer)];
  await world.anvil.setAutomine(false);
  await one.submit(stuck);
  await other.submit(next);
  now += 100_000;
  const { transaction } = await other.submit(next);
  await world.anvil.mine(1);
  await world.anvil.setAutomine(true);
  expect(await other.find(next, transaction)).toMatchObject({ state: 'settled', event: { transaction } });
  expect(await one.find(stuck, null)).toEqual({ state: 'open' });
  await world.mined(one.submit(stuck));
  expect(await one.find(stuck, null)).toMatchObject({ state: 'settled' });
});

test('a transaction that waits for one that never came is made anew in its place', async () => {
  let now = Date.now();
  const proxy = await startRpcFaultProxy(world.anvil.url);
  const chain = world.chainWith({ rpcUrl: proxy.url, now: () => now });
  const payment = await world.payment(await world.payer());
  const later = (count: unknown) => `0x${(Number(count) + 1).toString(16)}`;
  proxy.set({ methods: ['eth_getTransactionCount'], times: 2, fault: { kind: 'rewrite', result: later } });
  const { transaction } = await chain.submit(payment);
  await world.anvil.mine(1);
  expect(await chain.submit(payment)).toEqual({ transaction });
  expect(await chain.find(payment, transaction)).toEqual({ state: 'open' });
  now += 30_000;
  const again = await world.mined(chain.submit(payment));
  expect(await chain.find(payment, transaction)).toMatchObject({
    state: 'settled',
    event: { transaction: again.transaction },
  });
  await proxy.stop();
});

test('a node that does not count what is waiting lets two gateways take one nonce: the second takes the next', async () => {
  const proxy = await startRpcFaultProxy(world.anvil.url);
  proxy.set({
    methods: ['eth_getTransactionCount'],
    fault: { kind: 'rewrite', request: (request) => ({ ...request, params: [world.treasury.address, 'latest'] }) },
  });
  const [one, other] = [world.chainWith({ rpcUrl: proxy.url }), world.chainWith({ rpcUrl: proxy.url })];
  const payer = await world.payer();
  const [first, second] = [await world.payment(payer), await world.payment(payer)];
  await world.anvil.setAutomine(false);
  await one.submit(first);
  await other.submit(second);
  await world.anvil.mine(1);
  await world.anvil.setAutomine(true);
  for (const payment of [first, second]) expect(await one.find(payment, null)).toMatchObject({ state: 'settled' });
  await proxy.stop();
});

test('one gateway gives its transactions one after the other, none of which is refused', async () => {
  const proxy = await startRpcFaultProxy(world.anvil.url);
  const chain = world.chainWith({ rpcUrl: proxy.url });
  const payer = await world.payer();
  const payments = await Promise.all(Array.from({ length: 6 }, () => world.payment(payer)));
  await world.anvil.setAutomine(false);
  await Promise.all(payments.map((payment) => chain.submit(payment)));
  await world.anvil.mine(1);
  await world.anvil.setAutomine(true);
  for (const payment of payments)
    expect(await chain.find(payment, null)).toMatchObject({ state: 'settled', event: { confirmations: 1 } });
  expect(proxy.seen.filter(({ method }) => method === 'eth_sendRawTransaction').length).toBe(6);
  await proxy.stop();
});
