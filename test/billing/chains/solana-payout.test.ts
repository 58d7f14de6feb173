import { afterEach, beforeEach, expect, test } from 'vitest';
import bs58 from 'bs58';
import type { SignedPayout } from '../../../src/billing/chains/chain.ts';
import { ataOf, tokenAccountBytes, TOKEN_PROGRAM, USDC } from '../../support/chain/solana-accounts.ts';
import { solanaStage, type SolanaStage } from '../../support/chain/solana-stage.ts';
import { closeAccount, newPayer } from '../../support/chain/solana-wallet.ts';

/**
 * A payout pays once: what was signed is kept, sent as often as it takes, and signed anew only when it can pay no more.
 */
let stage: SolanaStage;
beforeEach(async () => {
  stage = await solanaStage();
  stage.twin.fundUsdc(stage.treasury.address, 50_000_000n);
});
afterEach(() => stage.close());

async function payoutOf(amount = 5_000_000n, id = 'withdrawal-1') {
  const { address } = await newPayer();
  return { id, to: address as string, amount };
}

test('it is sent as often as it takes and pays once, into an account that it makes', async () => {
  const { twin, chain } = stage;
  const payout = await payoutOf();
  const signed = await chain.sign(payout, null);
  expect(await chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });
  twin.chain.confirmAfter = 2;
  const sent = await Promise.all([
    chain.send(payout, signed),
    stage.another().send(payout, signed),
    chain.send(payout, signed),
  ]);
  expect(new Set([...sent.map(({ transaction }) => transaction), signed.transaction]).size).toBe(1);
  expect(await chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });
  twin.advance(2);
  expect(await chain.findPayout(payout, signed, 'a wrong hint')).toMatchObject({
    state: 'paid',
    transaction: signed.transaction,
    final: false,
  });
  twin.finalize();
  await chain.send(payout, signed);
  expect(await chain.findPayout(payout, signed, null)).toMatchObject({ state: 'paid', final: true });
  expect(twin.chain.tokens(payout.to)).toBe(5_000_000n);
  expect(twin.chain.find(signed.transaction!)?.memo).toBe('[12] withdrawal-1');
});

test('one that was dropped is lost once finality is beyond its last block, is signed anew, and pays once', async () => {
  const { twin, chain } = stage;
  const payout = await payoutOf();
  const first = await chain.sign(payout, null);
  twin.faults.dropNext = 1;
  await chain.send(payout, first);
  let slots = 0;
  for (; (await chain.findPayout(payout, first, null)).state === 'open'; slots += 10) {
    await expect(chain.sign(payout, first)).rejects.toThrow(/A second signature could pay twice/);
    twin.advance(10);
  }
  // 150 blocks of validity, 150 for the answers of a pool, finality 32 behind.
  expect(slots).toBe(340);
  const second = await chain.sign(payout, first);
  expect(second.transaction).not.toBe(first.transaction);
  await chain.send(payout, second);
  // The first comes out of some buffer after all.
  await chain.send(payout, first);
  twin.finalize();
  expect(twin.chain.tokens(payout.to)).toBe(5_000_000n);
  expect(await chain.findPayout(payout, second, null)).toMatchObject({ state: 'paid', final: true });
  expect(await chain.findPayout(payout, first, null)).toMatchObject({ state: 'lost' });
});

test('signing anew while the first may still come would pay twice: that is what is refused', async () => {
  const { twin, chain } = stage;
  const payout = await payoutOf();
  const first = await chain.sign(payout, null);
  twin.faults.landAfter = 100;
  await chain.send(payout, first);
  twin.advance(60);
  twin.faults.landAfter = 0;
  await expect(chain.sign(payout, first)).rejects.toThrow(/is open/);
  // What an impatient gateway would do.
  const naive = await chain.sign(payout, null);
  await chain.send(payout, naive);
  twin.advance(60);
  expect(twin.chain.tokens(payout.to)).toBe(10_000_000n);
  await expect(chain.sign(payout, first)).rejects.toThrow(/is paid/);
});

test('a node that is stale, behind, forgetful, late in its pool or of another network never makes a payout lost', async () => {
  const { twin, chain } = stage;
  const payout = await payoutOf();
  const signed = await chain.sign(payout, null);
  await chain.send(payout, signed);
  twin.advance(1_000);
  const nothing = (method: string, honest: unknown) =>
    method === 'getSignatureStatuses' ? { context: { slot: twin.chain.slot - 900 }, value: [null] } : honest;
  twin.faults.lie = nothing;
  await expect(chain.findPayout(payout, signed, null)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  twin.faults.lie = null;

  const { slot } = twin.chain.find(signed.transaction!)!;
  twin.faults.forgetBefore = slot + 1;
  // It says itself that its history does not reach back; one that is as old as the payout is not enough either.
  expect(await chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });
  twin.faults.forgetBefore = 0;

  const dropped = await payoutOf(1n, 'withdrawal-2');
  const kept = await chain.sign(dropped, null);
  twin.advance(700);
  twin.faults.unhealthy = true;
  await expect(chain.findPayout(dropped, kept, null)).rejects.toMatchObject({ name: 'ChainUnavailable' });
  twin.faults.unhealthy = false;
  twin.faults.lie = (method, honest) =>
    method === 'getGenesisHash' ? '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d' : honest;
  await expect(chain.findPayout(dropped, kept, null)).rejects.toMatchObject({
    name: 'ChainUnavailable',
    message: /is of solana:5eykt4/,
  });
  twin.faults.lie = (method, honest) =>
    method === 'isBlockhashValid' ? { context: { slot: twin.chain.slot }, value: true } : honest;
  expect(await chain.findPayout(dropped, kept, null)).toEqual({ state: 'open' });
  twin.faults.lie = null;
  twin.faults.staleBy = 600;
  expect(await stage.another().findPayout(dropped, kept, null)).toEqual({ state: 'open' });
  twin.faults.staleBy = 0;
  expect((await chain.findPayout(dropped, kept, null)).state).toBe('lost');
});

test('one that fails on the chain is lost when that is final', async () => {
  const { twin, chain } = stage;
  const payout = await payoutOf(60_000_000n);
  const signed = await chain.sign(payout, null);
  await chain.send(payout, signed);
  expect(await chain.findPayout(payout, signed, null)).toEqual({ state: 'open' });
  twin.finalize();
  expect(await chain.findPayout(payout, signed, null)).toMatchObject({ state: 'lost', reason: /failed on the chain/ });
  twin.fundUsdc(stage.treasury.address, 20_000_000n);
  await chain.send(payout, await chain.sign(payout, signed));
  expect(twin.chain.tokens(payout.to)).toBe(60_000_000n);
});

test('one that is paid less for an account pays only if it opens it, and each signing anew looks again', async () => {
  const { twin, chain } = stage;
  const owner = await newPayer();
  const payout = { id: 'withdrawal-1', to: owner.address as string, amount: 5_000_000n, tokenAccountFee: 250_000n };
  const less = { ...payout, amount: 4_750_000n };
  const fails = async (of: typeof payout, signed: SignedPayout) => {
    await chain.send(of, signed);
    twin.finalize();
    expect(await chain.findPayout(of, signed, null)).toMatchObject({ state: 'lost', reason: /failed on the chain/ });
  };
  const first = await chain.sign(payout, null);
  expect(first.tokenAccountFee).toBe(250_000n);
  await expect(chain.send(payout, first)).rejects.toThrow(/not a signed transaction of this withdrawal/);
  twin.fundUsdc(owner.address, 0n);
  await fails(less, first);
  const second = await chain.sign(payout, first);
  expect(second).not.toHaveProperty('tokenAccountFee');
  await closeAccount(twin, owner);
  await fails(payout, second);
  const third = await chain.sign(payout, second);
  expect(third.tokenAccountFee).toBe(250_000n);
  await chain.send(less, third);
  twin.finalize();
  expect(await chain.findPayout(less, third, null)).toMatchObject({ state: 'paid', final: true });
  expect([twin.chain.tokens(payout.to), twin.chain.tokens(stage.treasury.address)]).toEqual([4_750_000n, 45_250_000n]);
});

test('a receiver whose token account is frozen after the signing is not paid again and again', async () => {
  const { twin, chain } = stage;
  const payout = await payoutOf();
  twin.fundUsdc(payout.to, 0n);
  const signed = await chain.sign(payout, null);
  twin.chain.setAccount(ataOf(payout.to), {
    lamports: twin.chain.rent(165),
    data: tokenAccountBytes(USDC, payout.to, 0n).with(108, 2),
    programAddress: TOKEN_PROGRAM,
    executable: false,
  });
  await chain.send(payout, signed);
  twin.finalize();
  expect(await chain.findPayout(payout, signed, null)).toMatchObject({ state: 'lost' });
  await expect(chain.sign(payout, signed)).rejects.toThrow(`The token account of ${payout.to} for ${USDC} is frozen`);
});

test('SOL at the address of a token account is no token account', async () => {
  const { twin, chain } = stage;
  const payout = { ...(await payoutOf()), tokenAccountFee: 1_000_000n };
  twin.fundSol(ataOf(payout.to), 1_000_000n);
  await expect(stage.another({ opensAccounts: false }).sign(payout, null)).rejects.toThrow(/has no token account/);
  await expect(chain.sign({ ...payout, amount: 1_000_000n }, null)).rejects.toThrow(
    /To open one costs a fee of 1 USDC, and only 1 USDC were to be paid: withdraw more/,
  );
  await chain.send({ ...payout, amount: 4_000_000n }, await chain.sign(payout, null));
  expect(twin.chain.tokens(payout.to)).toBe(4_000_000n);
});

test('what was kept must be this payout’s', async () => {
  const { chain } = stage;
  const payout = await payoutOf();
  const signed = await chain.sign(payout, null);
  const wrong: [object, SignedPayout][] = [
    [{ ...payout, amount: 4n }, signed],
    [{ ...payout, id: 'withdrawal-2' }, signed],
    [{ ...payout, to: stage.treasury.address }, signed],
    [payout, { ...signed, text: '{}' }],
    [
      payout,
      { ...signed, text: JSON.stringify({ ...JSON.parse(signed.text), signature: bs58.encode(new Uint8Array(64)) }) },
    ],
  ];
  for (const [other, kept] of wrong) {
    await expect(chain.send(other as never, kept)).rejects.toThrow(/not a signed transaction of this withdrawal/);
    await expect(chain.findPayout(other as never, kept, null)).rejects.toThrow(
      /not a signed transaction of this withdrawal/,
    );
  }
});

test('addresses that nobody could spend from are refused, and say why', async () => {
  const { twin, chain } = stage;
  const wallet = await newPayer();
  expect(chain.addressFault(wallet.address)).toBeNull();
  expect(chain.addressFault('0x1234')).toMatch(/32 bytes in base58/);
  expect(chain.addressFault('1'.repeat(1_000_000))).toMatch(/32 bytes in base58/);
  expect(chain.addressFault(chain.treasury)).toMatch(/own treasury/);
  expect(chain.addressFault(USDC)).toMatch(/of the token/);
  expect(chain.addressFault('11111111111111111111111111111111')).toMatch(/program/);
  expect(chain.addressFault(ataOf(wallet.address))).toMatch(/token account or of a program/);
  // A token account with a key of its own can only be told by asking.
  twin.chain.setAccount(wallet.address, {
    lamports: 1_000_000_000n,
    data: tokenAccountBytes(USDC, wallet.address, 0n),
    programAddress: TOKEN_PROGRAM,
    executable: false,
  });
  await expect(chain.sign({ id: 'w', to: wallet.address, amount: 1n }, null)).rejects.toThrow(
    /is an account of the program Token/,
  );
  await expect(chain.sign({ id: 'w', to: (await newPayer()).address, amount: 0n }, null)).rejects.toThrow(
    /1 micro-USD or more/,
  );
});
