import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Chain, SignedPayment } from '../../../src/billing/chains/chain.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import {
  startRpcFaultProxy,
  type RpcFault,
  type RpcFaultProxy,
  type RpcRequest,
} from '../../support/chain/rpc-fault-proxy.ts';
import { staleEvmNode } from '../../support/chain/stale-evm-node.ts';

/*
 * A node that is away, slow, behind, or speaks nonsense says nothing about a payment: it is neither settled nor
 * lost by that.
 */

const deep = process.env['TOLLGATE_DEEP'] === '1';
let world: EvmWorld;
let proxy: RpcFaultProxy;
let chain: Chain;
const seconds = () => BigInt(Math.floor(Date.now() / 1000));

beforeAll(async () => {
  world = await startEvmWorld();
  await world.anvil.mine(4);
  proxy = await startRpcFaultProxy(world.anvil.url);
  chain = world.chainWith({ rpcUrl: proxy.url, timeoutMs: 10_000 });
});
afterEach(() => proxy.heal());
afterAll(async () => {
  await proxy.stop();
  await world.stop();
});

const height = async () => Number(await world.anvil.rpc<string>('eth_blockNumber'));
const unavailable = expect.objectContaining({ name: 'ChainUnavailable' });

/** A chain that has found nothing before. */
const fresh = () => world.chainWith({ rpcUrl: proxy.url, timeoutMs: 10_000 });

/** All that came in. After a fault a look may cover fewer blocks, and says that there are more. */
async function allIncoming(cursor: string): Promise<unknown> {
  const events: unknown[] = [];
  for (let from = cursor; ;) {
    const found = await chain.incoming(from);
    events.push(...found.events);
    if (!found.more) return { ...found, events };
    from = found.cursor;
  }
}

/** Everything that a chain is asked about a payment that is settled. */
const questions: readonly (readonly [
  string,
  (payment: SignedPayment, hint: string | null, cursor: string) => Promise<unknown>,
])[] = [
  ['find', (payment, hint) => fresh().find(payment, hint)],
  ['find without a hint', (payment) => fresh().find(payment, null)],
  ['find again', (payment, hint) => chain.find(payment, hint)],
  ['incoming', (_payment, _hint, cursor) => allIncoming(cursor)],
  ['balanceAt', (_payment, _hint, cursor) => chain.balanceAt(cursor)],
];
const faults: readonly (readonly [string, RpcFault])[] = [
  ['refuses connections', { kind: 'refuse' }],
  ['answers 502', { kind: 'status', status: 502, body: '<html>Bad gateway</html>' }],
  ['refuses to answer', { kind: 'error', code: -32603, message: 'internal error' }],
  ['answers a number', { kind: 'drop', result: 7 }],
  ['answers an object', { kind: 'drop', result: {} }],
  ['answers bytes that mean nothing', { kind: 'drop', result: '0x1234' }],
  ['answers true', { kind: 'drop', result: true }],
  ['answers a list of nothing', { kind: 'drop', result: [null] }],
];

test('any fault in any question is "unavailable", or the truth', async () => {
  const { cursor } = await world.chain.incoming(null);
  const payment = await world.payment(await world.payer());
  const { transaction } = await world.mined(world.chain.submit(payment));
  await world.anvil.mine(4);
  const right = await Promise.all(questions.map(([, ask]) => ask(payment, transaction, cursor)));
  for (const [index, [name, ask]] of questions.entries()) {
    proxy.forget();
    await ask(payment, transaction, cursor);
    const asked = proxy.seen.length;
    expect(asked).toBeGreaterThan(2);
    for (const [which, [what, fault]] of faults.entries())
      // By day every fourth question of each fault, and of the next fault the ones after those.
      for (let at = deep ? 0 : which % 4; at < asked; at += deep ? 1 : 4) {
        let count = 0;
        // Range searches are asked again for less, so that refusing once is no fault.
        proxy.set({ when: () => count++ === at, fault });
        const answer = await ask(payment, transaction, cursor).catch((error: unknown) => error);
        if (answer instanceof Error) expect([name, what, at, answer]).toEqual([name, what, at, unavailable]);
        else expect([name, what, at, answer]).toEqual([name, what, at, right[index]]);
      }
    proxy.heal();
  }
});

test('a node that never answers is given up after the time for one answer', async () => {
  const payment = await world.payment(await world.payer());
  const hasty = world.chainWith({ rpcUrl: proxy.url, timeoutMs: 50 });
  proxy.set({ fault: { kind: 'hang' } });
  await expect(hasty.find(payment, null)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: expect.stringContaining('no answer within 50 ms'),
  });
  proxy.set({ fault: { kind: 'delay', ms: 20 } });
  expect(await chain.find(payment, null)).toEqual({ state: 'open' });
});

test('balances of another block than the one that was asked about say nothing of what arrived', async () => {
  const payment = await world.payment(await world.payer());
  const { transaction } = await world.mined(world.chain.submit(payment));
  const block = `0x${(await height()).toString(16)}`;
  const looking = fresh();
  let elsewhere = false;
  const asksBalance = ({ params }: RpcRequest) => JSON.stringify(params).includes('0x70a08231');
  proxy.set(
    {
      methods: ['eth_call'],
      when: (request) => asksBalance(request) && (elsewhere = true),
      fault: { kind: 'rewrite', result: () => `0x${'0'.repeat(64)}` },
    },
    {
      methods: ['eth_getBlockByNumber'],
      when: ({ params }) => elsewhere && (params as unknown[])[0] === block,
      fault: { kind: 'rewrite', result: (found) => ({ ...(found as object), hash: `0x${'1'.repeat(64)}` }) },
    },
  );
  await expect(looking.find(payment, transaction)).rejects.toThrow('was replaced');
  expect(elsewhere).toBe(true);
  proxy.heal();
  expect(await looking.find(payment, transaction)).toMatchObject({ state: 'settled' });
});

test('an answer without end is not read to its end', async () => {
  const payment = await world.payment(await world.payer());
  const patient = world.chainWith({ rpcUrl: proxy.url, timeoutMs: 30_000 });
  proxy.set({ methods: ['eth_getBlockByNumber'], fault: { kind: 'drop', result: 'x'.repeat(9_000_000) } });
  await expect(patient.find(payment, null)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: expect.stringContaining('more than 8388608 bytes'),
  });
});

test('a broadcast whose answer is lost is found; giving the payment again pays nothing more', async () => {
  for (let round = 0; round < (deep ? 50 : 1); round++) {
    const before = await world.held();
    const payment = await world.payment(await world.payer());
    proxy.set({ methods: ['eth_sendRawTransaction'], times: 1, fault: { kind: 'swallow' } });
    await expect(chain.submit(payment)).rejects.toEqual(unavailable);
    await world.anvil.mine(1);
    expect(await chain.find(payment, null)).toMatchObject({ state: 'settled' });
    expect(await world.mined(chain.submit(payment))).toEqual({ transaction: null });
    expect((await world.held()) - before).toBe(1_000_000n);
  }
});

test('a broadcast that the node throws away is open, and goes out when it is given again', async () => {
  const payment = await world.payment(await world.payer());
  proxy.set({ methods: ['eth_sendRawTransaction'], times: 1, fault: { kind: 'drop', result: `0x${'12'.repeat(32)}` } });
  const { transaction } = await chain.submit(payment);
  expect(await chain.find(payment, transaction)).toEqual({ state: 'open' });
  expect(await world.mined(chain.submit(payment))).toEqual({ transaction });
  expect(await chain.find(payment, transaction)).toMatchObject({ state: 'settled', event: { transaction } });
});

test('a nonce that another gateway took meanwhile is replaced by the next', async () => {
  const payment = await world.payment(await world.payer());
  const taken = {
    methods: ['eth_getTransactionCount'],
    times: 4,
    fault: { kind: 'rewrite', result: () => '0x0' },
  } as const;
  proxy.set(taken);
  const { transaction } = await world.mined(chain.submit(payment));
  expect(await chain.find(payment, transaction)).toMatchObject({ state: 'settled', event: { transaction } });
});

test.for([10, 5])('a node that bears %i blocks at a time is asked for few', async (limit) => {
  await world.anvil.mine(2);
  const { cursor } = await world.chain.incoming(null);
  await world.anvil.mine(100);
  const payment = await world.payment(await world.payer());
  const { transaction } = await world.mined(world.chain.submit(payment));
  await world.anvil.mine(100);
  const spans: number[] = [];
  const span = ({ params }: { params?: unknown }) => {
    const { fromBlock, toBlock } = (params as { fromBlock?: string; toBlock?: string }[])[0]!;
    return fromBlock === undefined ? 1 : Number(toBlock) - Number(fromBlock) + 1;
  };
  const few = world.chainWith({ rpcUrl: proxy.url });
  proxy.set({
    methods: ['eth_getLogs'],
    when: (request) => spans.push(span(request)) > 0 && span(request) > limit,
    fault: {
      kind: 'error',
      code: -32600,
      message: `Under the Free tier plan, you can make eth_getLogs requests with up to a ${limit} block range`,
    },
  });
  expect(await few.find(payment, null)).toMatchObject({ state: 'settled', event: { transaction } });
  const events = [];
  for (let page = await few.incoming(cursor); ; page = await few.incoming(page.cursor)) {
    events.push(...page.events);
    if (!page.more) break;
  }
  expect(events).toMatchObject([{ transaction, paymentId: payment.id }]);
  expect(spans.filter((one) => one > limit).length).toBeLessThan(spans.length / 4);
});

test('a payout that the node left out of the first search is found once the node shows it', async () => {
  // Its chain is short, so that a few searches reach its beginning.
  const own = await startEvmWorld();
  onTestFinished(() => own.stop());
  const node = await startRpcFaultProxy(own.anvil.url);
  onTestFinished(() => node.stop());
  const payout = { id: 'left-out', to: (await own.payer()).address, amount: 3n };
  await own.token.mint(own.treasury.address, 3n);
  await own.anvil.mine(100);
  const signed = await own.chain.sign(payout, null);
  const { transaction } = await own.mined(own.chain.send(payout, signed));
  const { cursor } = await own.chain.incoming(null);
  await own.anvil.mine(40);
  const oneBlock = {
    methods: ['eth_getLogs'],
    when: ({ params }: RpcRequest) => {
      const { fromBlock, toBlock } = (params as { fromBlock?: string; toBlock?: string }[])[0]!;
      return fromBlock !== toBlock;
    },
    fault: { kind: 'error', code: -32600, message: 'eth_getLogs is limited to 1 block' },
  } as const;
  const late = own.chainWith({ rpcUrl: node.url, timeoutMs: 10_000 });
  const look = () => late.findPayout(payout, signed, null).catch((error: Error) => error.name);
  node.set(oneBlock);
  // It learns how many blocks the node accepts, so that one search does not reach the beginning.
  await late.incoming(cursor);
  node.set(oneBlock, { methods: ['eth_getLogs'], fault: { kind: 'drop', result: [] } });
  const sightings = [await look()];
  node.set(oneBlock);
  for (let again = 0; again < 2; again += 1) sightings.push(await look());
  expect(sightings).toMatchObject([
    'ChainUnavailable',
    'ChainUnavailable',
    { state: 'paid', transaction, final: true },
  ]);
});

test('a node that keeps no old balances is believed by its logs, and tells no old balance', async () => {
  await world.anvil.mine(2);
  const { cursor } = await chain.incoming(null);
  const payment = await world.payment(await world.payer());
  const { transaction } = await world.mined(world.chain.submit(payment));
  await world.anvil.mine(2);
  const balanceOf = '0x70a08231';
  proxy.set({
    methods: ['eth_call'],
    when: ({ params }) => (params as { data?: string }[])[0]!.data!.startsWith(balanceOf),
    fault: {
      kind: 'error',
      code: -32000,
      message: 'missing trie node 4a1b (path ) state 0x4a1b is not available, not found',
    },
  });
  const forgetful = fresh();
  expect(await forgetful.balanceAt(cursor)).toBeNull();
  expect(await forgetful.find(payment, null)).toMatchObject({
    state: 'settled',
    event: { amount: 1_000_000n, final: true },
  });
  expect((await forgetful.incoming(cursor)).events).toMatchObject([{ transaction, amount: 1_000_000n }]);
});

test('a node whose logs leave out what came in is not believed', async () => {
  await world.anvil.mine(2);
  const { cursor } = await chain.incoming(null);
  await world.mined(world.chain.submit(await world.payment(await world.payer())));
  await world.anvil.mine(2);
  proxy.set({ methods: ['eth_getLogs'], fault: { kind: 'drop', result: [] } });
  await expect(chain.incoming(cursor)).rejects.toMatchObject({
    message: expect.stringContaining("1000000 more than the node's logs of blocks"),
  });
  // Of another asset, of another time.
  const log = {
    address: `0x${'12'.repeat(20)}`,
    topics: [],
    data: '0x',
    blockNumber: '0x1',
    blockHash: `0x${'12'.repeat(32)}`,
    transactionHash: `0x${'12'.repeat(32)}`,
    logIndex: '0x0',
  };
  proxy.set({ methods: ['eth_getLogs'], fault: { kind: 'drop', result: [log] } });
  await expect(chain.incoming(cursor)).rejects.toMatchObject({
    message: expect.stringContaining('logs that were not asked for'),
  });
});

test('blocks that are exchanged while they are looked at say nothing', async () => {
  await world.anvil.mine(2);
  const { cursor } = await chain.incoming(null);
  const payer = await world.payer();
  const [settled, unpaid] = [await world.payment(payer), await world.payment(payer)];
  const { transaction } = await world.mined(world.chain.submit(settled));
  await world.anvil.mine(2);
  const byNumber = ({ params }: RpcRequest) => (params as string[])[0]!.startsWith('0x');
  const exchanged = (block: unknown) => ({ ...(block as object), hash: `0x${'12'.repeat(32)}` });
  proxy.set({ methods: ['eth_getBlockByNumber'], when: byNumber, fault: { kind: 'rewrite', result: exchanged } });
  await expect(chain.find(settled, transaction)).rejects.toEqual(unavailable);
  await expect(chain.find(unpaid, null)).rejects.toEqual(unavailable);
  // The second time that it is asked: the first is whether the cursor's block is there.
  let asked = 0;
  proxy.set({
    methods: ['eth_getBlockByNumber'],
    when: (request) => byNumber(request) && ++asked > 2,
    fault: { kind: 'rewrite', result: exchanged },
  });
  await expect(chain.incoming(cursor)).rejects.toEqual(unavailable);
});

// From here on the chain is ahead of the clock.
test('a payment is lost once a final block is later than its end, and never by what a stale node says', async () => {
  const payer = await world.payer();
  const [settled, unpaid] = [
    await world.payment(payer, 1_000_000n, { validBefore: seconds() + 20_000n }),
    await world.payment(payer, 1_000_000n, { validBefore: seconds() + 20_000n }),
  ];
  const before = await height();
  const { transaction } = await world.mined(world.chain.submit(settled));
  await world.anvil.setNextTime(Number(seconds()) + 20_001);
  await world.anvil.mine(1);
  // The end is over in the newest block, not in the final one.
  expect(await chain.find(unpaid, null)).toEqual({ state: 'open' });
  await world.anvil.mine(2);
  const reason = expect.stringContaining('no block until then has it');
  expect(await chain.find(unpaid, null)).toEqual({ state: 'lost', reason });

  proxy.set(...staleEvmNode(before));
  expect(await chain.find(settled, transaction)).toEqual({ state: 'open' });
  // Behind one address: some questions go to a machine that is behind, in every combination of methods.
  const methods = ['eth_getBlockByNumber', 'eth_call', 'eth_getLogs', 'eth_getTransactionReceipt'];
  for (let mask = 1; mask < 1 << methods.length; mask++) {
    const behind = methods.filter((_method, bit) => mask & (1 << bit));
    proxy.set(
      ...staleEvmNode(before).map((rule) => ({
        ...rule,
        methods: behind.filter((one) => rule.methods?.includes(one) ?? true),
      })),
    );
    for (const hint of deep ? [transaction, null] : [mask % 2 === 0 ? transaction : null]) {
      const answer = await chain.find(settled, hint).catch((error: unknown) => error);
      if (answer instanceof Error) expect(answer).toEqual(unavailable);
      else
        expect([behind, answer]).toEqual([
          behind,
          expect.objectContaining({ state: expect.stringMatching(/^(settled|open)$/) }),
        ]);
    }
  }
});

test('while one of several machines is behind at random, nothing wrong is ever said', async () => {
  const payer = await world.payer();
  const { cursor } = await world.chain.incoming(null);
  const payment = await world.payment(payer, 1_000_000n, { validBefore: seconds() + 40_000n });
  const before = await height();
  const { transaction } = await world.mined(world.chain.submit(payment));
  await world.anvil.setNextTime(Number(seconds()) + 40_001);
  await world.anvil.mine(5);
  for (let round = 0; round < (deep ? 2000 : 20); round++) {
    const behind = (): boolean => Math.random() < 0.3;
    proxy.set(
      ...staleEvmNode(before + (round % 3)).map((rule) => ({
        ...rule,
        when: (request: RpcRequest) => behind() && (rule.when?.(request) ?? true),
      })),
    );
    const answer = await chain.find(payment, round % 2 === 0 ? transaction : null).catch((error: unknown) => error);
    if (answer instanceof Error) expect(answer).toEqual(unavailable);
    else expect(['settled', 'open']).toContain((answer as { state: string }).state);
    const page = await chain.incoming(cursor).catch((error: unknown) => error);
    if (page instanceof Error) expect(page).toEqual(unavailable);
    else if ((page as { height: bigint }).height > BigInt(before))
      expect(page).toMatchObject({ events: [{ transaction }] });
  }
});
