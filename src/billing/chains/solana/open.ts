import { setTimeout as pause } from 'node:timers/promises';
import type { Address } from '@solana/kit';
import {
  AccountState,
  getCreateAssociatedTokenIdempotentInstruction,
  getMintDecoder,
  getTokenDecoder,
} from '@solana-program/token';
import { ChainUnavailable } from '../chain.ts';
import { DECIMALS, TOKEN_ACCOUNT_BYTES, TOKEN_PROGRAM, type TreasuryKey } from './address.ts';
import type { SolanaNode } from './node.ts';
import { OWN_FEE_LAMPORTS, signOwn } from './build-transaction.ts';

const MINT_BYTES = 82;
/**
 * The rent of a token account of 165 bytes, and the minimum balance of an account that pays fees (3,480 lamports per
 * byte and year, for two years, with 128 bytes added).
 */
const TOKEN_ACCOUNT_LAMPORTS = 2_039_280n;
const WALLET_LAMPORTS = 890_880n;
const FIRST_PAUSE_MS = 50;
const PAUSE_MAX_MS = 1_000;

interface TreasurySetup {
  readonly node: SolanaNode;
  readonly network: string;
  readonly asset: Address;
  readonly key: TreasuryKey;
  readonly treasuryAccount: Address;
  readonly timeoutMs: number;
}

/**
 * Checks that the node serves the network. Returns null, or the fault. CAIP-2 names a network of Solana by the first 32
 * characters of its genesis hash.
 */
export async function networkFault(node: SolanaNode, network: string): Promise<string | null> {
  const genesis = `solana:${(await node.genesisHash()).slice(0, 32)}`;
  return genesis === network
    ? null
    : `the Solana node belongs to ${genesis}, not to ${network}: set the address of a node of ${network}`;
}

/**
 * Checks the network and the asset, and creates the treasury's token account, which every payment needs. Throws Error
 * for a fault that the operator has to correct.
 */
export async function openTreasury({
  node,
  network,
  asset,
  key,
  treasuryAccount,
  timeoutMs,
}: TreasurySetup): Promise<void> {
  const fault = await networkFault(node, network);
  if (fault !== null) throw new Error(fault);
  await checkMint(node, network, asset);
  const existing = await node.account(treasuryAccount);
  if (existing !== null) return checkAccount(existing, key.address, asset, treasuryAccount);
  // The SOL is checked only for the first start. A treasury that runs out of SOL later stops payments but not gateways.
  const lamports = await node.lamports(key.address);
  const needed = WALLET_LAMPORTS + OWN_FEE_LAMPORTS + TOKEN_ACCOUNT_LAMPORTS;
  if (lamports < needed)
    throw new Error(
      `the treasury ${key.address} on ${network} has ${lamports} lamports and needs at least ${needed} for fees and its token account: send it some SOL`,
    );

  const payer = { address: key.address, signTransactions: () => Promise.resolve([]) };
  const create = getCreateAssociatedTokenIdempotentInstruction({
    payer,
    ata: treasuryAccount,
    owner: key.address,
    mint: asset,
  });
  const { base64, id } = signOwn(key, [create], await node.latestBlockhash());
  await node.send(base64, id);
  const until = performance.now() + Math.max(timeoutMs, CREATED_WITHIN_MS);
  for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 1.6, PAUSE_MAX_MS)) {
    const created = await node.account(treasuryAccount);
    if (created !== null) return checkAccount(created, key.address, asset, treasuryAccount);
    if (performance.now() + wait > until)
      throw new ChainUnavailable(
        `the transaction that creates the treasury's token account ${treasuryAccount} was sent, but the account does not exist yet`,
      );
    await pause(wait);
  }
}

/** Longer than a confirmation, which takes about a second. */
const CREATED_WITHIN_MS = 5_000;

async function checkMint(node: SolanaNode, network: string, asset: Address): Promise<void> {
  const mint = await node.account(asset);
  if (mint === null)
    throw new Error(`the asset ${asset} does not exist on ${network}: it must be the mint of USDC there`);
  if (mint.owner !== TOKEN_PROGRAM || mint.data.length !== MINT_BYTES)
    throw new Error(
      `the asset ${asset} on ${network} is not a mint of the SPL Token program, but an account of ${mint.owner}. It must be the mint of USDC there`,
    );
  const { decimals, isInitialized } = getMintDecoder().decode(mint.data);
  if (!isInitialized || decimals !== DECIMALS)
    throw new Error(
      `the asset ${asset} on ${network} has ${decimals} decimals: it must have ${DECIMALS}, so that its smallest unit is 1 micro-USD`,
    );
}

function checkAccount(
  { owner, data }: { readonly owner: string; readonly data: Uint8Array },
  treasury: Address,
  asset: Address,
  account: Address,
): void {
  const token = owner === TOKEN_PROGRAM && data.length === TOKEN_ACCOUNT_BYTES ? getTokenDecoder().decode(data) : null;
  if (token === null || token.mint !== asset || token.owner !== treasury)
    throw new Error(
      `the treasury's token account ${account} does not belong to ${treasury} any more, or is not of ${asset}`,
    );
  if (token.state !== AccountState.Initialized)
    throw new Error(
      `the treasury's token account ${account} is frozen by the issuer of ${asset}: nobody can pay into it`,
    );
}
