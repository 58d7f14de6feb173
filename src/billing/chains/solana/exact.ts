import { createPublicKey, verify } from 'node:crypto';
import {
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
  getTransactionEncoder,
  type Address,
  type Transaction,
} from '@solana/kit';
import bs58 from 'bs58';
import { PaymentProblem } from '../chain.ts';
import {
  COMPUTE_BUDGET_PROGRAM,
  DECIMALS,
  LIGHTHOUSE_PROGRAM,
  MEMO_PROGRAM,
  TOKEN_PROGRAM,
  tokenAccountAddress,
} from './address.ts';
import { messageHashOf, type SolanaInstruction } from './transaction.ts';

/** The terms that a payment must match exactly. */
export interface ExactTerms {
  readonly asset: Address;
  readonly treasury: Address;
  readonly treasuryAccount: Address;
  readonly feePayer: Address;
  readonly amount: bigint;
  /** null: any memo or none is allowed. */
  readonly memo: string | null;
}

/** A payment's transaction that matches its terms exactly. */
interface ExactTransaction {
  readonly wire: Transaction;
  readonly message: Uint8Array;
  readonly messageHash: string;
  readonly blockhash: string;
  readonly payer: Address;
  readonly source: Address;
  /** The memo as text; null without one. */
  readonly memo: string | null;
}

/** A transaction has at most 1,232 bytes. This is their length in base64. */
const BASE64_MAX = 1_644;
export const MEMO_BYTES_MAX = 256;
const COMPUTE_UNITS_MAX = 100_000;
/** The highest cost of a payment for the treasury, beside the fee for two signatures. */
const PRIORITY_LAMPORTS_MAX = 50_000n;
const ASSERTIONS_MAX = 3;
const ASSERTION_BYTES_MAX = 256;

/**
 * Reads a payment's transaction and checks it against its terms. The treasury's key signs it as fee payer, and the same
 * key owns the treasury's tokens and SOL. So the transaction may contain only what is checked here, account by account,
 * even if a library or a simulation would accept more. Layout: x402 `exact` on Solana (scheme_exact_svm.md), by
 * ordinary wallets. Throws PaymentProblem.
 */
export function readExact(base64: unknown, terms: ExactTerms): ExactTransaction {
  const { wire, message, compiled } = open(base64);
  const keys = compiled.staticAccounts;
  if ('addressTableLookups' in compiled && (compiled.addressTableLookups?.length ?? 0) > 0)
    throw refused('uses address lookup tables: all its accounts must be in the message');
  if (new Set(keys).size !== keys.length) throw refused('names an account twice');
  if (compiled.header.numSignerAccounts !== 2)
    throw refused(
      `asks for ${compiled.header.numSignerAccounts} signatures: there must be 2, the fee payer's and the payer's`,
    );
  const payer = keys[1]!;
  if (keys[0] !== terms.feePayer)
    throw refused(`has the fee payer ${keys[0]}: it must be ${terms.feePayer}, as extra.feePayer says`);
  if (payer === terms.treasury) throw refused('is paid by the treasury itself');

  const used = new Set<number>([0]);
  const instructions = compiled.instructions.map((one): SolanaInstruction => {
    const indices = one.accountIndices ?? [];
    for (const at of [one.programAddressIndex, ...indices]) {
      if (keys[at] === undefined) throw refused('refers to an account that it does not have');
      used.add(at);
    }
    return {
      program: keys[one.programAddressIndex]!,
      accounts: indices.map((at) => keys[at]!),
      data: Uint8Array.from(one.data ?? []),
    };
  });
  if (used.size !== keys.length) throw refused('names an account that no instruction uses');

  const [limit, price, transfer, ...rest] = instructions;
  checkFee(limit, price);
  const source = checkTransfer(transfer, payer, terms);
  const memo = checkRest(rest, terms, source);
  checkSignature(wire, message, payer);
  return { wire, message, messageHash: messageHashOf(message), blockhash: compiled.lifetimeToken, payer, source, memo };
}

/** Adds the fee payer's signature. Returns the transaction in base64 and its id. */
export function withFeeSignature(
  { wire }: ExactTransaction,
  feePayer: Address,
  signature: Uint8Array,
): { readonly base64: string; readonly id: string } {
  const signed = { ...wire, signatures: { ...wire.signatures, [feePayer]: signature } } as Transaction;
  return { base64: Buffer.from(getTransactionEncoder().encode(signed)).toString('base64'), id: bs58.encode(signature) };
}

function open(base64: unknown) {
  if (typeof base64 !== 'string' || base64.length === 0 || base64.length > BASE64_MAX)
    throw malformed('payload.transaction must be a Solana transaction in base64, of at most 1232 bytes');
  const bytes = Buffer.from(base64, 'base64');
  try {
    const wire = getTransactionDecoder().decode(bytes);
    const message = Uint8Array.from(wire.messageBytes);
    const compiled = getCompiledTransactionMessageDecoder().decode(message);
    if (compiled.version !== 'legacy' && compiled.version !== 0) throw new Error('unknown version');
    // Only the canonical encoding is accepted. Two encodings of one transaction would count as two payments for a
    // reader that compares bytes.
    if (!bytes.equals(Buffer.from(getTransactionEncoder().encode(wire)))) throw new Error('not canonical');
    if (!Buffer.from(message).equals(Buffer.from(getCompiledTransactionMessageEncoder().encode(compiled))))
      throw new Error('not canonical');
    return { wire, message, compiled };
  } catch (cause) {
    throw malformed('payload.transaction is no Solana transaction of version 0 (or legacy) in base64', cause);
  }
}

function checkFee(limit: SolanaInstruction | undefined, price: SolanaInstruction | undefined): void {
  const order = 'must begin with SetComputeUnitLimit and SetComputeUnitPrice';
  if (
    limit?.program !== COMPUTE_BUDGET_PROGRAM ||
    limit.data[0] !== 2 ||
    limit.data.length !== 5 ||
    limit.accounts.length > 0
  )
    throw refused(order);
  if (
    price?.program !== COMPUTE_BUDGET_PROGRAM ||
    price.data[0] !== 3 ||
    price.data.length !== 9 ||
    price.accounts.length > 0
  )
    throw refused(order);
  const units = Buffer.from(limit.data).readUInt32LE(1);
  if (units > COMPUTE_UNITS_MAX)
    throw refused(`asks for ${units} compute units: at most ${COMPUTE_UNITS_MAX} are paid for`);
  const fee = (BigInt(units) * Buffer.from(price.data).readBigUInt64LE(1)) / 1_000_000n;
  if (fee > PRIORITY_LAMPORTS_MAX)
    throw refused(`asks for a priority fee of ${fee} lamports: at most ${PRIORITY_LAMPORTS_MAX} are paid`);
}

function checkTransfer(transfer: SolanaInstruction | undefined, payer: Address, terms: ExactTerms): Address {
  if (
    transfer?.program !== TOKEN_PROGRAM ||
    transfer.data[0] !== 12 ||
    transfer.data.length !== 10 ||
    transfer.accounts.length !== 4
  )
    throw refused('must have one TransferChecked of the SPL Token program as its third instruction');
  const [source, mint, destination, authority] = transfer.accounts;
  if (mint !== terms.asset) throw refused(`transfers the token ${mint}: it must be ${terms.asset}`);
  if (destination !== terms.treasuryAccount)
    throw refused(
      `pays into ${destination}: it must be ${terms.treasuryAccount}, the associated token account of ${terms.treasury}`,
    );
  if (authority !== payer) throw refused("must be authorized by the payer's signature");
  const expected = tokenAccountAddress(payer, terms.asset);
  if (source !== expected)
    throw refused(`pays from ${source}: it must be ${expected}, the payer's associated token account`);
  const amount = Buffer.from(transfer.data).readBigUInt64LE(1);
  if (amount < terms.amount)
    throw new PaymentProblem(
      'insufficient_payment',
      `The payment's transaction transfers ${amount}: it must be ${terms.amount} micro-USD`,
    );
  if (amount !== terms.amount) throw refused(`transfers ${amount}: it must be exactly ${terms.amount}`);
  if (transfer.data[9] !== DECIMALS)
    throw refused(`counts the token in ${transfer.data[9]} decimals: it must be ${DECIMALS}`);
  return expected;
}

/** Checks the instructions after the transfer. Returns the memo. */
function checkRest(rest: readonly SolanaInstruction[], terms: ExactTerms, source: Address): string | null {
  const memos = rest.filter(({ program }) => program === MEMO_PROGRAM);
  const assertions = rest.filter(({ program }) => program === LIGHTHOUSE_PROGRAM);
  const strange = rest.find(({ program }) => program !== MEMO_PROGRAM && program !== LIGHTHOUSE_PROGRAM);
  if (strange)
    throw refused(
      `calls the program ${strange.program}: after the transfer only a memo and Lighthouse assertions may follow`,
    );
  if (memos.length > 1) throw refused(`has ${memos.length} memos: at most one may be`);
  const [memo] = memos;
  if (memo && (memo.accounts.length > 0 || memo.data.length > MEMO_BYTES_MAX))
    throw refused(`must have a memo without signers, of at most ${MEMO_BYTES_MAX} bytes`);
  if (terms.memo !== null && (!memo || !Buffer.from(memo.data).equals(Buffer.from(terms.memo, 'utf8'))))
    throw refused(`must have the memo ${JSON.stringify(terms.memo)}, as extra.memo says`);
  if (assertions.length > ASSERTIONS_MAX)
    throw refused(`has ${assertions.length} Lighthouse assertions: at most ${ASSERTIONS_MAX} may be`);
  // A program cannot use the fee payer's signature if the fee payer is not among its accounts.
  const own = new Set<string>([terms.feePayer, terms.treasury, terms.treasuryAccount]);
  for (const { accounts, data } of assertions) {
    if (data.length > ASSERTION_BYTES_MAX || accounts.some((one) => own.has(one)))
      throw refused(
        `must have Lighthouse assertions about the payer's own accounts only, such as ${source}, of at most ${ASSERTION_BYTES_MAX} bytes`,
      );
  }
  return memo ? Buffer.from(memo.data).toString('utf8') : null;
}

function checkSignature(wire: Transaction, message: Uint8Array, payer: Address): void {
  const signature = wire.signatures[payer];
  const key = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(bs58.decode(payer)).toString('base64url') };
  let valid = false;
  try {
    valid = !!signature && verify(null, message, createPublicKey({ key, format: 'jwk' }), signature);
  } catch {
    // A key that is no point on the curve cannot sign.
  }
  if (!valid) throw refused(`is not signed by its payer ${payer}`);
}

function refused(what: string): PaymentProblem {
  return new PaymentProblem('payment_verification_failed', `The payment's transaction ${what}`);
}

function malformed(message: string, cause?: unknown): PaymentProblem {
  return new PaymentProblem('invalid_request', message, { cause });
}
