import { createWalletClient, http } from 'viem';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { receiptOf } from '../../support/chain/evm-receipt.ts';
import { deployContract, freshKey } from '../../support/chain/evm-token.ts';
import { startEvmWorld, type EvmWorld } from '../../support/chain/evm-world.ts';
import { startRpcFaultProxy } from '../../support/chain/rpc-fault-proxy.ts';

/*
 * Whether a payment would succeed, and whose account it is of, before anything is sent.
 */

let world: EvmWorld;
const seconds = () => BigInt(Math.floor(Date.now() / 1000));

beforeAll(async () => {
  world = await startEvmWorld();
});
afterAll(() => world.stop());

test('a signature of somebody else is refused', async () => {
  const [payer, thief] = [await world.payer(), freshKey()];
  const payment = await world.payment(thief, 1_000_000n, { as: payer.address });
  await expect(world.chain.verify(payment)).rejects.toMatchObject({
    name: 'PaymentProblem',
    code: 'payment_verification_failed',
  });
  await expect(world.chain.submit(payment)).rejects.toMatchObject({
    name: 'PaymentProblem',
    message: expect.stringContaining('invalid signature'),
  });
});

test('a payment that ended, ends at once, or has not begun is refused', async () => {
  const payer = await world.payer();
  const verify = async (terms: object) => world.chain.verify(await world.payment(payer, 1_000_000n, terms));
  await expect(verify({ validBefore: seconds() - 10n })).rejects.toMatchObject({
    code: 'payment_expired',
    message: expect.stringContaining('Sign a new one'),
  });
  await expect(verify({ validBefore: seconds() + 3n })).rejects.toMatchObject({
    code: 'payment_expired',
    message: expect.stringContaining('Sign a new one'),
  });
  await expect(verify({ validAfter: seconds() + 60n })).rejects.toMatchObject({ code: 'payment_verification_failed' });
  await expect(
    world.chain.submit(await world.payment(payer, 1_000_000n, { validBefore: seconds() - 10n })),
  ).rejects.toMatchObject({
    code: 'payment_expired',
  });
});

test('a payer who has too little, and an authorization that was used, are refused', async () => {
  const payer = await world.payer(1_000_000n);
  await expect(world.chain.verify(await world.payment(payer, 1_000_001n))).rejects.toMatchObject({
    code: 'payment_verification_failed',
    message: `${payer.address} holds 1000000 of the asset, but the payment is 1000001`,
  });
  const payment = await world.payment(payer, 400_000n);
  await world.mined(world.chain.submit(payment));
  await expect(world.chain.verify(payment)).rejects.toMatchObject({
    message: expect.stringContaining('was used already'),
  });
});

test('a signature that ends with 0 or 1 is one that ends with 27 or 28', async () => {
  const payer = await world.payer();
  const payment = await world.payment(payer);
  const { authorization, signature } = payment.payload as { authorization: object; signature: string };
  const bare = {
    ...payment,
    payload: { authorization, signature: signature.slice(0, -2) + (signature.endsWith('1b') ? '00' : '01') },
  };
  expect(await world.chain.verify(bare)).toEqual({ account: `eip155:${payer.address.toLowerCase()}` });
  await world.mined(world.chain.submit(bare));
  expect(await world.chain.find(payment, null)).toMatchObject({ state: 'settled' });
});

test.each([
  ['of 65 bytes', ''],
  ['of its own length', 'c0ffee'],
])('a contract wallet pays with a signature %s, into an account of its own chain', async (_what, tail) => {
  const owner = freshKey();
  const wallet = await deployContract(world.anvil, 'ContractWallet', [owner.address]);
  await world.token.mint(wallet, 5_000_000n);
  const payment = await world.payment(owner, 1_000_000n, { as: wallet });
  const longer = {
    ...payment,
    payload: { ...payment.payload, signature: `${String(payment.payload['signature'])}${tail}` },
  };
  expect(await world.chain.verify(longer)).toEqual({ account: `eip155:84532:${wallet.toLowerCase()}` });
  const { transaction } = await world.mined(world.chain.submit(longer));
  expect(await world.chain.find(payment, transaction)).toMatchObject({
    state: 'settled',
    event: { amount: 1_000_000n },
  });

  const stranger = await world.payment(freshKey(), 1_000_000n, { as: wallet });
  await expect(world.chain.verify(stranger)).rejects.toMatchObject({ code: 'payment_verification_failed' });
});

test('an account with code of its own (EIP-7702) whose key signs is an ordinary account', async () => {
  const key = freshKey();
  const account = privateKeyToAccount(`0x${Buffer.from(key.secret).toString('hex')}`);
  const contractAddress = await deployContract(world.anvil, 'ContractWallet', [`0x${'00'.repeat(20)}`]);
  await world.anvil.setBalance(account.address, 10n ** 18n);
  const client = createWalletClient({ account, transport: http(world.anvil.url) });
  const authorization = await client.signAuthorization({ contractAddress, executor: 'self', chainId: 84_532 });
  const asked = { authorizationList: [authorization], to: account.address, chain: null, gas: 200_000n };
  await receiptOf(world.anvil, await client.sendTransaction(asked));
  expect(await world.anvil.rpc<Hex>('eth_getCode', [account.address, 'latest'])).toMatch(/^0xef0100/);
  await world.token.mint(account.address, 1_000_000n);
  const payment = await world.payment(account);
  expect(await world.chain.verify(payment)).toEqual({ account: `eip155:${account.address.toLowerCase()}` });
  const { transaction } = await world.mined(world.chain.submit(payment));
  expect(await world.chain.find(payment, transaction)).toMatchObject({ state: 'settled' });
});

test('a node that is away, or speaks nonsense, makes no signature wrong', async () => {
  const payment = await world.payment(await world.payer());
  const proxy = await startRpcFaultProxy(world.anvil.url);
  const chain = world.chainWith({ rpcUrl: proxy.url });
  for (const methods of [['eth_getCode'], ['eth_call']])
    for (const fault of [
      { kind: 'refuse' },
      { kind: 'status', status: 503, body: 'busy' },
      { kind: 'drop', result: { x: 1 } },
    ] as const) {
      proxy.set({ methods, fault });
      await expect(chain.verify(payment)).rejects.toMatchObject({ name: 'ChainUnavailable' });
    }
  proxy.set({ methods: ['eth_call'], fault: { kind: 'error', code: -32005, message: 'rate limited' } });
  await expect(chain.verify(payment)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: 'The node refuses: rate limited',
  });
  proxy.heal();
  expect(await chain.verify(payment)).toEqual({ account: payment.payerAccount });
  await proxy.stop();
});

test('a wallet whose signature takes more gas than a payment is worth is not paid for', async () => {
  const payment = await world.payment(await world.payer());
  const proxy = await startRpcFaultProxy(world.anvil.url);
  const chain = world.chainWith({ rpcUrl: proxy.url });
  proxy.set({ methods: ['eth_estimateGas'], fault: { kind: 'drop', result: '0x100000' } });
  await expect(chain.submit(payment)).rejects.toMatchObject({
    name: 'PaymentProblem',
    message: expect.stringContaining('it takes 1310720 gas, more than 600000'),
  });
  expect(proxy.seen.map(({ method }) => method)).not.toContain('eth_sendRawTransaction');
  await proxy.stop();
});
