import {
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  type Address,
  type Instruction,
  isOffCurveAddress,
} from '@solana/kit';
import {
  AccountState,
  getCreateAssociatedTokenIdempotentInstruction,
  getCreateAssociatedTokenInstruction,
  getTokenDecoder,
} from '@solana-program/token';
import bs58 from 'bs58';
import { formatUsd, MICRO_USD_MAX, type MicroUsd } from '#billing/amounts';
import {
  ChainUnavailable,
  PayoutProblem,
  PayoutUnreadable,
  type ChainPayout,
  type PayoutSighting,
  type SignedPayout,
  type UnsignedPayout,
} from '../chain.ts';
import {
  isSignature,
  MEMO_PROGRAM,
  SYSTEM_PROGRAM,
  TOKEN_ACCOUNT_BYTES,
  TOKEN_PROGRAM,
  tokenAccountAddress,
  type TreasuryKey,
  addressOf,
  ASSOCIATED_TOKEN_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  LIGHTHOUSE_PROGRAM,
  TOKEN_2022_PROGRAM,
} from './address.ts';
import { natural, objectOf, textOf, type SignatureStatus, type SolanaAccount } from './node-answers.ts';
import { checkNotBefore, type Expiry } from './expiry.ts';
import type { SolanaNode } from './node.ts';
import { signOwn, stubSigner, transferWithMemo } from './build-transaction.ts';

const MEMO_BYTES_MAX = 256;
/** A blockhash with fewer blocks left comes from a node that is behind. */
const BLOCKS_LEFT_MIN = 100n;

/** The stored data of a signed payout. It is sufficient to send it and to know when it can no longer pay. */
interface Journal {
  /** The transaction in base64. */
  readonly transaction: string;
  readonly signature: string;
  readonly blockhash: string;
  readonly lastValidBlockHeight: bigint;
  /** The slot of the signing. */
  readonly slot: bigint;
}

interface SolanaPayouts {
  addressFault(address: string): string | null;
  sign(payout: UnsignedPayout, previous: SignedPayout | null): Promise<SignedPayout>;
  send(payout: ChainPayout, signed: SignedPayout): Promise<{ readonly transaction: string }>;
  find(payout: ChainPayout, signed: SignedPayout): Promise<PayoutSighting>;
  payerOf(signed: SignedPayout): string;
}

/**
 * Creates payouts. The signed bytes are stored before they are sent, and no payout is signed again while the earlier
 * bytes may still pay.
 */
export function createPayouts(
  node: SolanaNode,
  key: TreasuryKey,
  asset: Address,
  expiry: Expiry,
  opensAccounts: boolean,
): SolanaPayouts {
  const addressFault = (text: string) => receiverFault(text, key.address, asset);

  /** `fee`: the fee for the token account that the payout opens; null if it opens no account. */
  function instructionsOf({ id, to, amount }: ChainPayout, fee: MicroUsd | null): Instruction[] {
    const owner = to as Address;
    const creation = {
      payer: stubSigner(key.address),
      ata: tokenAccountAddress(owner, asset),
      owner,
      mint: asset,
    };
    // If the receiver pays for the account, the payout must really create it. If the account exists by then, the payout
    // fails and is signed again without the fee.
    const create = fee === 0n ? getCreateAssociatedTokenIdempotentInstruction : getCreateAssociatedTokenInstruction;
    return [
      ...(fee === null ? [] : [create(creation)]),
      ...transferWithMemo({ from: key.address, to: owner, mint: asset, amount, memo: id }),
    ];
  }

  /** The fee for the token account that a payout has to open; null if the account exists. */
  async function feeOfAccount({ to, amount, tokenAccountFee = 0n }: UnsignedPayout): Promise<MicroUsd | null> {
    const account = await node.account(tokenAccountAddress(to as Address, asset));
    if (hasAccount(account, to, asset)) return null;
    // A receiver could close a free account and keep its rent.
    if (!opensAccounts)
      throw new PayoutProblem(
        `${to} has no token account for ${asset} yet. Send the wallet a small amount of the token, which creates the account, and withdraw again`,
      );
    if (amount <= tokenAccountFee)
      throw new PayoutProblem(
        `${to} has no token account for ${asset} yet. To open one costs a fee of ${formatUsd(tokenAccountFee)} USDC, and only ${formatUsd(amount)} USDC were to be paid: withdraw more, or make one`,
      );
    return tokenAccountFee;
  }

  async function find(payout: ChainPayout, signed: SignedPayout): Promise<PayoutSighting> {
    const journal = journalOf(payout, signed, asset);
    const seen = observationOf(journal.signature, await node.status(journal.signature));
    if (seen) return seen;
    const gone = await expiry.ofPayout(journal);
    if (gone === null) return { state: 'open' };
    // The order matters: first the proof that the payout can no longer arrive, then the proof that it has not arrived.
    // In the other order it could arrive between the two.
    const last = await node.status(journal.signature);
    checkNotBefore(last.slot, gone);
    return (
      observationOf(journal.signature, last) ?? {
        state: 'lost',
        reason: 'its blockhash expired before the transaction was in a block',
      }
    );
  }

  return {
    addressFault,
    find,
    payerOf,

    async sign(payout, previous) {
      const { id, to, amount } = payout;
      const fault = addressFault(to);
      if (fault !== null) throw new Error(`withdrawal ${id} cannot be paid to ${to}: ${fault}`);
      if (amount <= 0n || amount > MICRO_USD_MAX)
        throw new Error(`withdrawal ${id} cannot pay ${amount}: it must be 1 micro-USD or more`);
      if (id.length === 0 || Buffer.byteLength(id) > MEMO_BYTES_MAX)
        throw new Error(`the id of a withdrawal must have 1 to ${MEMO_BYTES_MAX} bytes`);
      if (previous !== null) {
        const { state } = await find({ ...payout, amount: amount - (previous.tokenAccountFee ?? 0n) }, previous);
        if (state !== 'lost')
          throw new Error(
            `withdrawal ${id} was signed before, and that transaction is ${state}. A second signature could pay twice`,
          );
      }
      const receiver = await node.account(to as Address);
      if (receiver !== null && receiver.owner !== SYSTEM_PROGRAM)
        throw new PayoutProblem(`${to} is an account of the program ${receiver.owner}, not a wallet`);
      const fee = await feeOfAccount(payout);

      const { blockhash, lastValidBlockHeight, slot } = await node.latestBlockhash();
      const { height } = await node.moment('confirmed');
      if (lastValidBlockHeight < height + BLOCKS_LEFT_MIN)
        throw new ChainUnavailable('the Solana node gives a blockhash that is about to expire');
      const { base64, id: signature } = signOwn(key, instructionsOf({ id, to, amount: amount - (fee ?? 0n) }, fee), {
        blockhash,
        lastValidBlockHeight,
      });
      const journal = {
        transaction: base64,
        signature,
        blockhash,
        lastValidBlockHeight: String(lastValidBlockHeight),
        slot: String(slot),
      };
      return {
        text: JSON.stringify(journal),
        transaction: signature,
        ...(fee === null || fee === 0n ? {} : { tokenAccountFee: fee }),
      };
    },

    async send(payout, signed) {
      const { transaction, signature } = journalOf(payout, signed, asset);
      await node.send(transaction, signature);
      return { transaction: signature };
    },
  };
}

/**
 * Whether a wallet has a token account. Throws PayoutProblem if that account cannot get a payout for the wallet. A
 * transfer to a frozen account fails on the chain each time, and costs its fee. The SPL Token program lets an owner
 * give an account away, and its address stays the same.
 */
function hasAccount(tokenAccount: SolanaAccount | null, wallet: string, asset: Address): boolean {
  // The address may have SOL that somebody sent there, without being a token account.
  if (tokenAccount === null || tokenAccount.owner === SYSTEM_PROGRAM) return false;
  const { owner, data } = tokenAccount;
  if (owner !== TOKEN_PROGRAM || data.length !== TOKEN_ACCOUNT_BYTES) return true;
  const token = getTokenDecoder().decode(data);
  const account = `The token account of ${wallet} for ${asset}`;
  if (token.state === AccountState.Frozen)
    throw new PayoutProblem(`${account} is frozen by the issuer of the token, so nobody can pay into it`);
  if (token.owner !== wallet)
    throw new PayoutProblem(`${account} belongs to ${token.owner} now, so the money would not reach the wallet`);
  return true;
}

/** The first signer pays the fee, and in a payout it is the treasury. Throws PayoutUnreadable. */
function payerOf({ text }: SignedPayout): string {
  try {
    const { transaction } = JSON.parse(text) as { readonly transaction: string };
    return Object.keys(getTransactionDecoder().decode(Buffer.from(transaction, 'base64')).signatures)[0]!;
  } catch (cause) {
    throw new PayoutUnreadable('the stored data of a withdrawal is not a signed transaction', { cause });
  }
}

function observationOf(signature: string, { inclusion }: SignatureStatus): PayoutSighting | null {
  if (inclusion === null) return null;
  const final = inclusion.level === 'finalized';
  if (inclusion.failed !== null)
    return final
      ? { state: 'lost', reason: `its transaction failed on the chain: ${inclusion.failed}` }
      : { state: 'open' };
  return inclusion.level === 'processed'
    ? { state: 'open' }
    : { state: 'paid', transaction: signature, final, height: inclusion.slot };
}

/**
 * Reads the stored data of a payout. Throws PayoutUnreadable if it belongs to another payout: then the books are wrong.
 */
function journalOf({ id, to, amount }: ChainPayout, { text }: SignedPayout, asset: Address): Journal {
  try {
    const journal = objectOf(JSON.parse(text), 'an object');
    const transaction = textOf(journal['transaction'], 'a transaction');
    const signature = textOf(journal['signature'], 'a signature');
    const { messageBytes, signatures } = getTransactionDecoder().decode(Buffer.from(transaction, 'base64'));
    const [first] = Object.values(signatures);
    if (!isSignature(signature) || !first || bs58.encode(Uint8Array.from(first)) !== signature)
      throw new Error('its signature is another one');
    const compiled = getCompiledTransactionMessageDecoder().decode(messageBytes);
    if (compiled.version !== 0) throw new Error('its version is another one');
    const ofProgram = (program: Address) =>
      compiled.instructions.find((one) => compiled.staticAccounts[one.programAddressIndex] === program);
    const transfer = ofProgram(TOKEN_PROGRAM);
    const receiver = compiled.staticAccounts[transfer?.accountIndices?.[2] ?? -1];
    const paid = Buffer.from(transfer?.data ?? Buffer.alloc(9)).readBigUInt64LE(1);
    const memo = Buffer.from(ofProgram(MEMO_PROGRAM)?.data ?? []).toString('utf8');
    if (memo !== id || paid !== amount || receiver !== tokenAccountAddress(to as Address, asset))
      throw new Error('it pays something else');
    return {
      transaction,
      signature,
      blockhash: textOf(journal['blockhash'], 'a blockhash'),
      lastValidBlockHeight: natural(journal['lastValidBlockHeight'], 'a block height'),
      slot: natural(journal['slot'], 'a slot'),
    };
  } catch (cause) {
    throw new PayoutUnreadable(`the stored data of withdrawal ${id} is not a signed transaction of this withdrawal`, {
      cause,
    });
  }
}

const PROGRAMS: ReadonlySet<string> = new Set([
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  ASSOCIATED_TOKEN_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  MEMO_PROGRAM,
  LIGHTHOUSE_PROGRAM,
]);

/** The reason why an address cannot get a payout; null if it can. */
function receiverFault(text: string, treasury: Address, asset: Address): string | null {
  const address = addressOf(text);
  if (address === null) return 'a Solana address is 32 bytes in base58, such as the address of a wallet';
  if (address === treasury) return "this is the gateway's own treasury";
  if (address === asset || PROGRAMS.has(address))
    return 'this is the address of a program or of the token, not of a wallet';
  // A point off the curve has no private key. It belongs to a program or is a token account.
  return isOffCurveAddress(address)
    ? 'this is the address of a token account or of a program, not of a wallet: give the address of the wallet itself'
    : null;
}
