import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Chain, ChainPayout, SignedPayment, SignedPayout } from '../../../src/billing/chains/chain.ts';
import { startRpcFaultProxy, type RpcFault, type RpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { newPayer, pay, send, transfer } from '../../support/chain/solana-wallet.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

/**
 * Whatever a node answers, or does not, a payment is never settled that did not come, nor lost that did: nothing is
 * known then.
 */
let stage: SolanaStage;
let proxy: RpcFaultProxy;
let chain: Chain;
/** The same, without patience. */
let hasty: Chain;
let made: SignedPayment;
let absent: SignedPayment;
let payout: ChainPayout;
let signed: SignedPayout;
let cursor: string;
beforeAll(async () => {
  stage = await solanaStage();
  const { twin } = stage;
  proxy = await startRpcFaultProxy(twin.url);
  chain = stage.another({ rpcUrl: proxy.url, timeoutMs: 10_000 });
  hasty = stage.another({ rpcUrl: proxy.url, timeoutMs: 60 });
  stage.twin.fundUsdc(stage.treasury.address, 10_000_000n);
  twin.advance(64);
  ({ cursor } = await chain.incoming(null));
  const payer = await stage.payer();
  made = chain.read(await pay(twin, payer, await chain.requirements(1_000n, null)));
  absent = chain.read(await pay(twin, payer, await chain.requirements(2_000n, null)));
  payout = { id: 'withdrawal-1', to: (await newPayer()).address, amount: 5n };
  signed = await chain.sign(payout, null);
  expect(await chain.find(absent, null)).toEqual({ state: 'open' });
  await chain.submit(made);
  await chain.send(payout, signed);
  twin.fundSol(payer.address);
  await send(twin, payer, [transfer({ from: payer.address, to: stage.treasury.address, amount: 9n })]);
  twin.advance(700);
});
beforeEach(() => proxy.heal());
afterAll(async () => {
  await proxy.stop();
  await stage.close();
});

const QUESTIONS: Readonly<
  Record<string, { readonly methods: readonly string[]; readonly ask: (chain: Chain) => Promise<unknown> }>
> = {
  find: { methods: ['getSignatureStatuses', 'getTransaction'], ask: (of) => of.find(made, null) },
  'find what is lost': {
    methods: [
      'getSignatureStatuses',
      'getEpochInfo',
      'isBlockhashValid',
      'getHealth',
      'getGenesisHash',
      'getFirstAvailableBlock',
    ],
    ask: (of) => of.find(absent, null),
  },
  findPayout: { methods: ['getSignatureStatuses'], ask: (of) => of.findPayout(payout, signed, null) },
  incoming: {
    methods: ['getEpochInfo', 'getSignaturesForAddress', 'getTransaction'],
    ask: (of) => of.incoming(cursor),
  },
  balanceAt: { methods: ['getTokenAccountBalance', 'getSignaturesForAddress'], ask: (of) => of.balanceAt(cursor) },
  verify: { methods: ['simulateTransaction'], ask: (of) => of.verify(absent) },
  submit: { methods: ['sendTransaction'], ask: (of) => of.submit(made) },
  send: { methods: ['sendTransaction'], ask: (of) => of.send(payout, signed) },
  sign: { methods: ['getLatestBlockhash', 'getAccountInfo', 'getEpochInfo'], ask: (of) => of.sign(payout, null) },
  open: { methods: ['getGenesisHash', 'getAccountInfo'], ask: (of) => of.open() },
};
const CASES = Object.entries(QUESTIONS).flatMap(([question, { methods, ask }]) =>
  methods.map((method) => [question, method, ask] as const),
);

const NONSENSE: readonly unknown[] = [
  undefined,
  7,
  -7,
  true,
  [],
  {},
  'text',
  { context: { slot: 50_000 }, value: undefined },
  { context: { slot: 50_000 }, value: 'text' },
  { context: { slot: 50_000 }, value: [7] },
  { context: { slot: 50_000 }, value: [{ slot: 10_100, err: null }] },
  { context: { slot: 50_000 }, value: [null, null] },
  { value: [null] },
  { context: {}, value: true },
  { slot: 10_100, transaction: ['AAAA', 'base64'], meta: { err: null } },
  { absoluteSlot: 5, blockHeight: 9_000 },
];
/**
 * Nonsense that is a proper answer of some method: what it says then is as good as any node's word, and decides
 * nothing alone.
 */
const PROPER: Readonly<Record<string, readonly unknown[]>> = {
  'balanceAt, getSignaturesForAddress': [[]],
  'find what is lost, getFirstAvailableBlock': [7],
};

test.each(CASES)('%s, when %s is answered with nonsense', async (question, method, ask) => {
  for (const result of NONSENSE) {
    if (PROPER[`${question}, ${method}`]?.some((one) => JSON.stringify(one) === JSON.stringify(result))) continue;
    proxy.set({ methods: [method], fault: { kind: 'drop', result } });
    const outcome = await ask(chain).then(
      (value) => JSON.stringify(value, (_key, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one)),
      (error: Error) => error.name,
    );
    // The text of a hash is a hash: then it is another network.
    const other =
      method === 'getGenesisHash' && result === 'text' && ask === QUESTIONS['open']!.ask ? 'Error' : 'ChainUnavailable';
    expect(outcome, JSON.stringify(result)).toBe(other);
  }
});

/** Waiting takes time: everyday for one question, for all of them in the deep run. */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const FAULTS: readonly RpcFault[] = [
  { kind: 'refuse' },
  { kind: 'swallow' },
  { kind: 'hang' },
  { kind: 'status', status: 503, body: 'busy' },
  { kind: 'status', status: 200, body: 'no JSON' },
  { kind: 'error', code: -32005, message: 'Node is behind' },
  { kind: 'error', code: -32016, message: 'Minimum context slot has not been reached' },
];

test.each(Object.entries(QUESTIONS))('%s, when nothing proper is answered at all', async (question, { ask }) => {
  for (const fault of FAULTS) {
    if (fault.kind === 'hang' && question !== 'find' && !DEEP) continue;
    proxy.set({ fault });
    const began = performance.now();
    await expect(ask(fault.kind === 'hang' ? hasty : chain), JSON.stringify(fault)).rejects.toMatchObject({
      name: 'ChainUnavailable',
    });
    expect(performance.now() - began).toBeLessThan(atThisLoad(2_000));
    proxy.heal();
  }
});

test('a transaction that is told in another’s place, or does not agree with its status, settles nothing', async () => {
  const { twin } = stage;
  const other = twin.chain.landed.at(-1)!;
  const { signature } = twin.chain.landed.find(
    ({ meta }) => JSON.stringify(meta).includes('"amount":"1000"') || JSON.stringify(meta).includes('9999000'),
  )!;
  const honest = twin.chain.find(signature)!;
  const answer = (of: typeof honest, meta: object = of.meta) => ({
    slot: of.slot,
    version: 0,
    transaction: [Buffer.from(of.wire).toString('base64'), 'base64'],
    meta,
  });
  const tampered = Buffer.from(honest.wire);
  // The last byte of the memo: the id stays, the message is another.
  tampered[tampered.length - 2]! ^= 1;
  const lies = [
    answer(other),
    { ...answer(honest), slot: honest.slot + 1 },
    answer(honest, { ...honest.meta, err: { InstructionError: [2, { Custom: 1 }] } }),
    answer(honest, { ...honest.meta, postTokenBalances: honest.meta['preTokenBalances'] }),
    answer(honest, { ...honest.meta, preTokenBalances: null, postTokenBalances: null }),
    { ...answer(honest), transaction: [tampered.toString('base64'), 'base64'] },
    null,
  ];
  for (const result of lies) {
    proxy.set({ methods: ['getTransaction'], fault: { kind: 'drop', result } });
    await expect(chain.find(made, null)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  }
  proxy.heal();
  expect(await chain.find(made, null)).toMatchObject({
    state: 'settled',
    event: { transaction: signature, amount: 1_000n, final: true },
  });
  expect(await chain.find(absent, null)).toMatchObject({ state: 'lost' });
});

test('a chain that was closed asks nobody any more', async () => {
  const closing = stage.another({ rpcUrl: proxy.url, timeoutMs: 60_000 });
  proxy.set({ fault: { kind: 'hang' } });
  const asked = proxy.next('getSignatureStatuses');
  const finding = closing.find(made, null);
  await asked;
  closing.close();
  await expect(finding).rejects.toMatchObject({ name: 'ChainUnavailable' });
});
