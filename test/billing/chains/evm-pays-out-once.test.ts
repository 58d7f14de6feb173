import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Hex } from 'viem';
import type { ChainPayout, SignedPayout } from '../../../src/billing/chains/chain.ts';
import { payoutNonce } from '../../../src/billing/chains/evm/payout.ts';
import { freshKey } from '../../support/chain/evm-token.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

/*
 * A payout is paid once, however often it is signed and sent, and whoever submits it.
 */

const rounds = process.env['TOLLGATE_DEEP'] === '1' ? 50 : 1;
let world: EvmWorld;
let ids = 0;

beforeAll(async () => {
  world = await startEvmWorld();
  await world.token.mint(world.treasury.address, 1_000_000_000n);
});
afterAll(() => world.stop());

const payoutOf = (amount = 2_000_000n): ChainPayout => ({ id: `w-${++ids}`, to: freshKey().address, amount });
const parsed = ({ text }: SignedPayout) => JSON.parse(text) as Record<string, string>;

test('what is signed has all that anybody needs to submit it, and asks no node', async () => {
  const away = world.chainWith({ rpcUrl: 'http://127.0.0.1:9' });
  const payout = payoutOf();
  const signed = await away.sign(payout, null);
  expect(signed.transaction).toBeNull();
  expect(parsed(signed)).toEqual({
    from: world.treasury.address,
    to: payout.to,
    value: '2000000',
    validAfter: '0',
    validBefore: '4102444800',
    nonce: payoutNonce(payout.id),
    signature: expect.stringMatching(/^0x[0-9a-f]{130}$/),
    network: 'eip155:84532',
    asset: world.chain.asset,
    signedAt: expect.any(Number),
  });
  expect(parsed(await world.chain.sign(payout, null))['signature']).toBe(parsed(signed)['signature']);
});

test('signed, sent, found, final; sent again it pays nothing more', async () => {
  const payout = payoutOf();
  const signed = await world.chain.sign(payout, null);
  expect(await world.chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });
  const { transaction } = await world.mined(world.chain.send(payout, signed));
  expect(await world.chain.findPayout(payout, signed, transaction)).toEqual({
    state: 'paid',
    transaction,
    final: false,
    height: expect.any(BigInt),
  });
  expect(await world.mined(world.chain.send(payout, signed))).toEqual({ transaction: null });
  await world.anvil.mine(2);
  expect(await world.chain.findPayout(payout, signed, `0x${'12'.repeat(32)}`)).toMatchObject({
    state: 'paid',
    transaction,
    final: true,
  });
  expect(await world.token.balanceOf(payout.to as Hex)).toBe(2_000_000n);
});

test('gateways that sign and send it at the same time, with answers lost, pay once', async () => {
  const proxy = await startRpcFaultProxy(world.anvil.url);
  const chains = [world.chain, world.chainWith({ rpcUrl: proxy.url }), world.chainWith({ rpcUrl: proxy.url })];
  for (let round = 0; round < rounds; round++) {
    const payout = payoutOf();
    proxy.set({ methods: ['eth_sendRawTransaction'], times: 1, fault: { kind: round % 2 ? 'refuse' : 'swallow' } });
    await world.anvil.setAutomine(round % 2 === 1);
    await Promise.allSettled(chains.map(async (chain) => chain.send(payout, await chain.sign(payout, null))));
    await world.anvil.mine(1);
    await world.anvil.setAutomine(true);
    const signed = await world.chain.sign(payout, null);
    await world.mined(world.chain.send(payout, signed));
    expect(await world.chain.findPayout(payout, signed, null)).toMatchObject({ state: 'paid' });
    expect(await world.token.balanceOf(payout.to as Hex)).toBe(2_000_000n);
  }
  await proxy.stop();
});

test('somebody else may submit it', async () => {
  const payout = payoutOf();
  const signed = await world.chain.sign(payout, null);
  const { signature, ...authorization } = parsed(signed);
  const transaction = await world.token.carryOut({ authorization, signature: signature as Hex });
  expect(await world.chain.findPayout(payout, signed, null)).toMatchObject({ state: 'paid', transaction });
  expect(await world.mined(world.chain.send(payout, signed))).toEqual({ transaction: null });
});

test('a chain that undoes it has it paid again, once', async () => {
  const payout = payoutOf();
  const signed = await world.chain.sign(payout, null);
  const { transaction } = await world.mined(world.chain.send(payout, signed));
  await world.anvil.reorg(1);
  expect(await world.chain.findPayout(payout, signed, transaction)).toEqual({ state: 'open' });
  await world.mined(world.chain.send(payout, signed));
  expect(await world.chain.findPayout(payout, signed, transaction)).toMatchObject({ state: 'paid' });
  expect(await world.token.balanceOf(payout.to as Hex)).toBe(2_000_000n);
});

test('one that was cancelled is lost at finality, and is not signed anew: only the treasury itself can have done that', async () => {
  const payout = payoutOf();
  const signed = await world.chain.sign(payout, null);
  await world.token.cancel(world.treasury, payoutNonce(payout.id));
  expect(await world.chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });
  await world.anvil.mine(2);
  expect(await world.chain.findPayout(payout, signed, null)).toEqual({
    state: 'lost',
    reason: expect.stringContaining("The treasury's key cancelled it"),
  });
  await expect(world.chain.sign(payout, signed)).rejects.toMatchObject({
    name: 'PayoutProblem',
    message: expect.stringContaining('used up by the treasury'),
  });
});

test('a payment that its payer cancelled is lost at finality', async () => {
  const payer = await world.payer();
  const payment = await world.payment(payer);
  await world.token.cancel(payer, (payment.payload['authorization'] as { nonce: Hex }).nonce);
  expect(await world.chain.find(payment, null)).toEqual({ state: 'open' });
  await world.anvil.mine(2);
  expect(await world.chain.find(payment, null)).toEqual({
    state: 'lost',
    reason: expect.stringContaining('Its payer cancelled it'),
  });
});

test('a treasury that holds too little, or cannot pay for gas, has sent nothing', async () => {
  const payout = payoutOf(10_000_000_000n);
  const signed = await world.chain.sign(payout, null);
  const later = {
    name: 'ChainUnavailable',
    message: expect.stringContaining(
      'would not succeed now: execution reverted: ERC20: transfer amount exceeds balance',
    ),
  };
  await expect(world.chain.send(payout, signed)).rejects.toMatchObject(later);
  expect(await world.chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });

  const small = payoutOf();
  await world.anvil.setBalance(world.treasury.address, 0n);
  await expect(world.chain.send(small, await world.chain.sign(small, null))).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: expect.stringMatching(/cannot pay for gas/),
  });
  await world.anvil.setBalance(world.treasury.address, 10n ** 19n);
  await world.mined(world.chain.send(small, await world.chain.sign(small, null)));
  expect(await world.token.balanceOf(small.to as Hex)).toBe(2_000_000n);
});

test('what was signed for another payout is not sent', async () => {
  const [payout, other] = [payoutOf(), payoutOf()];
  const signed = await world.chain.sign(payout, null);
  for (const [wrong, what] of [
    [{ ...payout, amount: 1n }, 'amount'],
    [{ ...payout, to: other.to }, 'receiver'],
    [{ ...payout, id: other.id }, 'withdrawal'],
  ] as const)
    await expect(world.chain.send(wrong, signed)).rejects.toThrow(`has another ${what}, so nothing is sent`);
  const text = JSON.stringify({ ...parsed(signed), network: 'eip155:1' });
  await expect(world.chain.send(payout, { text, transaction: null })).rejects.toThrow(
    'has another network, so nothing is sent',
  );
});
