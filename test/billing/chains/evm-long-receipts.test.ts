import { encodeFunctionData, parseAbi, type Hex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChainPayout, SignedPayout } from '../../../src/billing/chains/chain.ts';
import { receiptOf } from '../../support/chain/evm-receipt.ts';
import { carryOutCall, freshKey } from '../../support/chain/evm-token.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';

/*
 * Anybody can put a transfer into a transaction with so many logs that its receipt is longer than any answer that the
 * gateway reads. The transfer is seen all the same.
 */

const LOGS = 24_000;
const READ_MAX = 8 * 1024 * 1024;
const NOISY: Hex = `0x${'a0'.repeat(20)}`;

let world: EvmWorld;

beforeAll(async () => {
  world = await startEvmWorld();
  await world.anvil.rpc('anvil_setCode', [NOISY, noisyCode(world.token.address)]);
});
afterAll(() => world.stop());

/** A contract that writes LOGS empty logs and then calls the token with the call data that it got. */
function noisyCode(token: Hex): Hex {
  const loop = `62${LOGS.toString(16).padStart(6, '0')}5b60006000a06001900380600457`;
  const call = `36600060003760006000366000600073${token.slice(2)}5af1`;
  const fails = (loop.length + call.length) / 2 + 8;
  return `0x${loop}${call}60${fails.toString(16)}5760006000fd5b00`;
}

/** Makes a call of the token inside a transaction with a long receipt. Resolves with the transaction. */
async function amidNoise(data: Hex): Promise<Hex> {
  const [from] = await world.anvil.rpc<Hex[]>('eth_accounts');
  const hash = await world.anvil.rpc<Hex>('eth_sendTransaction', [{ from, to: NOISY, data, gas: '0xf42400' }]);
  expect((await receiptOf(world.anvil, hash)).status).toBe('success');
  const receipt = await world.anvil.rpc('eth_getTransactionReceipt', [hash]);
  expect(JSON.stringify(receipt).length).toBeGreaterThan(READ_MAX);
  return hash;
}

const transferCall = (to: Hex, amount: bigint): Hex =>
  encodeFunctionData({ abi: parseAbi(['function transfer(address, uint256)']), args: [to, amount] });

/** Call data that carries out a payout, as its owner may. */
function payoutCall({ text }: SignedPayout): Hex {
  const { signature, ...authorization } = JSON.parse(text) as Record<string, string>;
  return carryOutCall(authorization, signature as Hex);
}

test('a transfer among many logs is told, and so is what comes after it', async () => {
  const { cursor } = await world.chain.incoming(null);
  await world.token.mint(NOISY, 7n);
  const transaction = await amidNoise(transferCall(world.treasury.address, 7n));
  const payer = await world.payer();
  await world.token.transfer(payer, world.treasury.address, 900n);
  await world.anvil.mine(2);
  const { events } = await world.chain.incoming(cursor);
  expect(events).toEqual([
    expect.objectContaining({ transaction, amount: 7n, paymentId: null }),
    expect.objectContaining({ amount: 900n, sender: payer.address, paymentId: null }),
  ]);
});

test('a payment among many logs is told once, as this payment', async () => {
  const { cursor } = await world.chain.incoming(null);
  const payer = await world.payer();
  const payment = await world.payment(payer, 1_000n);
  const { authorization, signature } = payment.payload as {
    authorization: Record<string, string>;
    signature: Hex;
  };
  const transaction = await amidNoise(carryOutCall(authorization, signature));
  await world.anvil.mine(2);
  const event = { transaction, amount: 1_000n, final: true };
  expect(await world.chain.find(payment, transaction)).toMatchObject({ state: 'settled', event });
  expect(await world.chainWith({}).find(payment, null)).toMatchObject({ state: 'settled', event });
  const { events } = await world.chain.incoming(cursor);
  expect(events).toEqual([expect.objectContaining({ ...event, paymentId: payment.id })]);
});

test('a payout that its owner submits among many logs is paid', async () => {
  await world.token.mint(world.treasury.address, 2_000_000n);
  const payout: ChainPayout = { id: 'w-1', to: freshKey().address, amount: 2_000_000n };
  const signed = await world.chain.sign(payout, null);
  const transaction = await amidNoise(payoutCall(signed));
  await world.anvil.mine(2);
  expect(await world.chain.findPayout(payout, signed, null)).toMatchObject({
    state: 'paid',
    transaction,
    final: true,
  });
});
