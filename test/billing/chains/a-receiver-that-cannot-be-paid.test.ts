import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keccak256, stringToBytes, type Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { toHex } from 'viem';
import { escrowOf } from '#billing';
import { ataOf, tokenAccountBytes, TOKEN_PROGRAM, USDC } from '../../support/chain/solana-accounts.ts';
import { evmMoney, solanaMoney } from '../../support/chain/money-chain.ts';
import { openMoneyWorldOn, type MoneyWorld, type Payer } from '../../support/chain/money-world.ts';

const PAID = 5_000_000n;
const worlds: MoneyWorld[] = [];
const open = async <C extends Parameters<typeof openMoneyWorldOn>[0]>(chain: C) => {
  const world = await openMoneyWorldOn(chain);
  worlds.push(world);
  return world;
};
let solana: Awaited<ReturnType<typeof solanaMoney>>;
let evm: Awaited<ReturnType<typeof evmMoney>>;
beforeAll(async () => {
  [solana, evm] = await Promise.all([solanaMoney(), evmMoney()]);
});
afterAll(() => Promise.all(worlds.map((world) => world.close())));

async function funded(world: MoneyWorld): Promise<Payer> {
  const gateway = await world.gateway();
  const payer = await world.payer();
  const { payment } = await gateway.sign(payer, PAID);
  await gateway.chains.deposits.take(payment, { account: payer.account, request: null });
  await world.settle(gateway);
  await gateway.close();
  return payer;
}

test('a Solana wallet without a token account is not given one: the money goes back, and says why', async () => {
  const world = await open(solana);
  const payer = await funded(world);
  const nobody = await solana.payer(0n);
  const gateway = await world.gateway();
  const lamports = solana.twin.chain.account(world.treasury)!.lamports;
  const asked = {
    network: world.network,
    account: payer.account,
    source: escrowOf(payer.account),
    amount: 1_000_000n,
    handedOut: false,
  };
  await gateway.chains.withdrawals.request({ id: 'to-nobody', address: nobody.address, ...asked });
  await world.settle(gateway);
  expect(await gateway.chains.withdrawalRows.find('to-nobody')).toMatchObject({
    state: 'returned',
    reason: expect.stringContaining('has no token account'),
  });
  expect(await world.available(escrowOf(payer.account))).toBe(PAID);
  expect(solana.twin.chain.account(world.treasury)!.lamports).toBe(lamports);

  // Once it has one it is paid.
  solana.twin.fundUsdc(nobody.address, 0n);
  await gateway.chains.withdrawals.request({ id: 'to-somebody', address: nobody.address, ...asked });
  await world.settle(gateway);
  expect(await world.balanceOf(nobody.address)).toBe(1_000_000n);
});

test.each([
  ['is frozen by the issuer of the token', (wallet: string) => tokenAccountBytes(USDC, wallet, 0n).with(108, 2)],
  ['belongs to somebody else now', () => tokenAccountBytes(USDC, solana.twin.chain.account(USDC)!.programAddress, 0n)],
])('a Solana wallet whose token account %s gets its money back', async (_, bytes) => {
  const world = await open(solana);
  const payer = await funded(world);
  const receiver = await solana.payer(0n);
  const gateway = await world.gateway();
  solana.twin.chain.setAccount(ataOf(receiver.address), {
    lamports: solana.twin.chain.rent(165),
    data: bytes(receiver.address),
    programAddress: TOKEN_PROGRAM,
    executable: false,
  });
  const id = randomUUID();
  await gateway.chains.withdrawals.request({
    id,
    network: world.network,
    account: payer.account,
    source: escrowOf(payer.account),
    address: receiver.address,
    amount: 1_000_000n,
    handedOut: false,
  });
  await world.settle(gateway);
  const returned = { state: 'returned', reason: expect.stringContaining(`token account of ${receiver.address}`) };
  expect(await gateway.chains.withdrawalRows.find(id)).toMatchObject(returned);
  expect(await world.balanceOf(receiver.address)).toBe(0n);
  expect(await world.available(escrowOf(payer.account))).toBe(PAID);
});

test('an EVM payout whose nonce the treasury itself cancelled, in finality, goes back to its owner', async () => {
  const world = await open(evm);
  const payer = await funded(world);
  const treasury = privateKeyToAccount(toHex(evm.setup.treasuryKey));
  const nonce: Hex = keccak256(stringToBytes('withdrawal:cancelled'));
  await evm.token.cancel(treasury, nonce);
  await world.finalize();
  const gateway = await world.gateway();
  const asked = {
    network: world.network,
    account: payer.account,
    source: escrowOf(payer.account),
    address: payer.address,
    handedOut: false,
  };
  await gateway.chains.withdrawals.request({ id: 'cancelled', amount: 1_000_000n, ...asked });
  await world.settle(gateway);
  expect(await gateway.chains.withdrawalRows.find('cancelled')).toMatchObject({
    state: 'returned',
    reason: expect.stringContaining('used up by the treasury'),
  });
  expect(await world.available(escrowOf(payer.account))).toBe(PAID);
  expect(await world.balanceOf(payer.address)).toBe(100_000_000n - PAID);
});
