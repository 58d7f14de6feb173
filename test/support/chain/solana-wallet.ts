import { ExactSvmScheme } from '@x402/svm/exact/client';
import {
  appendTransactionMessageInstructions,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createKeyPairSignerFromBytes,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  partiallySignTransaction,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Address,
  type Blockhash,
  type Instruction,
  type KeyPairSigner,
} from '@solana/kit';
import {
  getCloseAccountInstruction,
  getTransferCheckedInstruction,
  getTransferInstruction,
} from '@solana-program/token';
import type { PaymentPayload, PaymentRequirements } from '../../../src/billing/chains/chain.ts';
import { solanaWallet } from '../wallets.ts';
import { ataOf, USDC } from './solana-accounts.ts';
import type { SolanaTwin } from './solana-twin.ts';

export const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111' as Address;
export const MEMO = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr' as Address;

/** A wallet with a key for signing with kit. */
export interface Payer {
  readonly address: Address;
  readonly signer: KeyPairSigner;
  readonly secret: Uint8Array;
}

export const newPayer = (): Promise<Payer> => payerOf(solanaWallet());

export async function payerOf({ secret }: Pick<Payer, 'secret'>): Promise<Payer> {
  const signer = await createKeyPairSignerFromBytes(secret);
  return { address: signer.address, signer, secret };
}

/** Pays the requirements like the x402 library's client. */
export async function pay(twin: SolanaTwin, payer: Payer, accepted: PaymentRequirements): Promise<PaymentPayload> {
  const client = new ExactSvmScheme(payer.signer, { rpcUrl: twin.url });
  const { payload } = await client.createPaymentPayload(2, accepted as never);
  return { x402Version: 2, accepted, payload };
}

/** SetComputeUnitLimit and SetComputeUnitPrice. */
export function budget(units = 20_000, price = 1n): Instruction[] {
  const limit = Buffer.from([2, 0, 0, 0, 0]);
  limit.writeUInt32LE(units, 1);
  const fee = Buffer.alloc(9, 3);
  fee.writeBigUInt64LE(price, 1);
  return [
    { programAddress: COMPUTE_BUDGET, data: Uint8Array.from(limit) },
    { programAddress: COMPUTE_BUDGET, data: Uint8Array.from(fee) },
  ];
}

export function memo(text: string, signers: readonly Address[] = []): Instruction {
  return { programAddress: MEMO, accounts: signers.map((address) => ({ address, role: 2 })), data: Buffer.from(text) };
}

export interface TransferOptions {
  readonly from: Address;
  readonly to: Address;
  readonly amount: bigint;
  readonly source?: string;
  readonly destination?: string;
  readonly mint?: string;
  readonly decimals?: number;
}

/** TransferChecked between two wallets' accounts. */
export function transfer({
  from,
  to,
  amount,
  source,
  destination,
  mint = USDC,
  decimals = 6,
}: TransferOptions): Instruction {
  const authority = { address: from, signTransactions: () => Promise.resolve([]) };
  return getTransferCheckedInstruction({
    source: (source ?? ataOf(from, mint)) as Address,
    mint: mint as Address,
    destination: (destination ?? ataOf(to, mint)) as Address,
    authority,
    amount,
    decimals,
  });
}

/** The older Transfer, which names no mint. */
export function plainTransfer(from: Address, to: Address, amount: bigint): Instruction {
  const authority = { address: from, signTransactions: () => Promise.resolve([]) };
  return getTransferInstruction({
    source: ataOf(from) as Address,
    destination: ataOf(to) as Address,
    authority,
    amount,
  });
}

export interface BuildOptions {
  readonly version?: 0 | 'legacy';
  readonly blockhash?: string;
  /** Addresses to put into a lookup table. */
  readonly lookup?: { readonly table: Address; readonly addresses: Address[] };
}

/** Builds a transaction, signed by the given signers. Returns base64. */
export async function build(
  twin: SolanaTwin,
  feePayer: Address,
  signers: readonly Payer[],
  instructions: readonly Instruction[],
  options: BuildOptions = {},
): Promise<string> {
  const latest = twin.chain.blockhashAt(twin.chain.slotAt('finalized'));
  const lifetime = {
    blockhash: (options.blockhash ?? latest.blockhash) as Blockhash,
    lastValidBlockHeight: BigInt(latest.lastValidBlockHeight),
  };
  const message = pipe(
    createTransactionMessage({ version: (options.version ?? 0) as 0 }),
    (one) => setTransactionMessageFeePayer(feePayer, one),
    (one) => setTransactionMessageLifetimeUsingBlockhash(lifetime, one),
    (one) => appendTransactionMessageInstructions(instructions, one),
  );
  const { lookup } = options;
  const compiled = compileTransaction(
    lookup === undefined
      ? message
      : (compressTransactionMessageUsingAddressLookupTables(message as never, {
          [lookup.table]: lookup.addresses,
        }) as unknown as typeof message),
  );
  return getBase64EncodedWireTransaction(
    await partiallySignTransaction(
      signers.map(({ signer }) => signer.keyPair),
      compiled,
    ),
  );
}

/** Sends a transaction of a wallet, as anybody may without the gateway. Resolves with its id. */
export async function send(
  twin: SolanaTwin,
  payer: Payer,
  instructions: readonly Instruction[],
  others: readonly Payer[] = [],
): Promise<string> {
  const transaction = await build(twin, payer.address, [payer, ...others], instructions);
  twin.chain.take(Uint8Array.from(Buffer.from(transaction, 'base64')), 0);
  const landed = twin.chain.landed.at(-1);
  if (landed === undefined || landed.err !== null) throw new Error(`it did not land: ${JSON.stringify(landed?.err)}`);
  return landed.signature;
}

/** Closes the empty token account of a wallet. The rent stays with the wallet. */
export async function closeAccount(twin: SolanaTwin, owner: Payer): Promise<void> {
  const { address } = owner;
  const signer = { address, signTransactions: () => Promise.resolve([]) };
  twin.fundSol(address);
  await send(twin, owner, [
    getCloseAccountInstruction({ account: ataOf(address) as Address, destination: address, owner: signer }),
  ]);
}
