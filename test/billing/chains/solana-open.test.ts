import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSolanaChain } from '../../../src/billing/chains/solana/solana-chain.ts';
import type { ChainSetup } from '../../../src/billing/chains/chain.ts';
import { ataOf, mintBytes, TOKEN_PROGRAM, tokenAccountBytes, USDC } from '../../support/chain/solana-accounts.ts';
import { setupOf } from '../../support/chain/solana-stage.ts';
import { startSolanaTwin, type SolanaTwin } from '../../support/chain/solana-twin.ts';
import { newPayer, type Payer } from '../../support/chain/solana-wallet.ts';

/** A chain opens when everything is as it must be, and otherwise says what the operator has to put right. */
let twin: SolanaTwin;
let treasury: Payer;
beforeEach(async () => {
  twin = await startSolanaTwin();
  treasury = await newPayer();
});
afterEach(() => twin.close());

async function open(changed: Partial<ChainSetup> = {}): Promise<void> {
  const chain = createSolanaChain({ ...setupOf(twin, treasury), ...changed });
  try {
    await chain.open();
  } finally {
    chain.close();
  }
}

test('the treasury’s token account is made once, from its SOL', async () => {
  await expect(open()).rejects.toThrow(/the treasury .* has 0 lamports and needs at least 2938160 .* send it some SOL/);
  twin.fundSol(treasury.address, 2_938_160n);
  await open();
  expect(twin.chain.account(ataOf(treasury.address))).toMatchObject({ programAddress: TOKEN_PROGRAM });
  twin.fundSol(treasury.address);
  await open();
  expect(twin.chain.landed).toHaveLength(1);
});

test('two gateways that open at once make one account', async () => {
  twin.fundSol(treasury.address);
  await Promise.all([open(), open()]);
  await open();
  expect(twin.chain.tokens(treasury.address)).toBe(0n);
});

test('an asset must be a mint of six decimals', async () => {
  twin.fundSol(treasury.address);
  await expect(open({ asset: treasury.address })).rejects.toThrow(/is not a mint of the SPL Token program/);
  await expect(open({ asset: (await newPayer()).address })).rejects.toThrow(/does not exist on solana:/);
  await expect(open({ asset: 'USDC' })).rejects.toThrow(/must be the address of a token's mint/);
  const mint = await newPayer();
  const put = (data: Uint8Array, programAddress: string = TOKEN_PROGRAM) =>
    twin.chain.setAccount(mint.address, { lamports: 10_000_000n, data, programAddress, executable: false });
  put(mintBytes(treasury.address, 1n, 9));
  await expect(open({ asset: mint.address })).rejects.toThrow(/has 9 decimals: it must have 6/);
  put(mintBytes(treasury.address, 1n, 6), 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb');
  await expect(open({ asset: mint.address })).rejects.toThrow(
    /not a mint of the SPL Token program, but an account of TokenzQ/,
  );
  put(tokenAccountBytes(USDC, treasury.address, 0n));
  await expect(open({ asset: mint.address })).rejects.toThrow(/not a mint/);
});

test('a treasury’s account that was frozen or given away is not opened', async () => {
  twin.fundSol(treasury.address);
  const other = await newPayer();
  const put = (owner: string, state: number) => {
    const data = tokenAccountBytes(USDC, owner, 0n);
    data[108] = state;
    twin.chain.setAccount(ataOf(treasury.address), {
      lamports: twin.chain.rent(165),
      data,
      programAddress: TOKEN_PROGRAM,
      executable: false,
    });
  };
  put(treasury.address, 2);
  await expect(open()).rejects.toThrow(/is frozen by the issuer/);
  put(other.address, 1);
  await expect(open()).rejects.toThrow(/does not belong to/);
});

test('the node must be of the network, and be there', async () => {
  await expect(open({ network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' })).rejects.toThrow(
    /the Solana node belongs to solana:EtWTRABZ.*, not to solana:5eykt4/,
  );
  await expect(open({ network: 'solana:devnet' })).rejects.toThrow(/first 32 characters of its genesis hash/);
  await expect(open({ rpcUrl: 'http://127.0.0.1:9' })).rejects.toMatchObject({ name: 'ChainUnavailable' });
});

test('keys and settings that cannot be right are refused at once', async () => {
  const setup = setupOf(twin, treasury);
  expect(() => createSolanaChain({ ...setup, treasuryKey: randomBytes(32) })).toThrow(/keypair of 64 bytes, not 32/);
  expect(() => createSolanaChain({ ...setup, treasuryKey: randomBytes(64) })).toThrow(
    /not the public key of its first 32/,
  );
  expect(() => createSolanaChain({ ...setup, finality: 12 })).toThrow(/finality in blocks is for EVM networks/);
});
