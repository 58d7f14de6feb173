import { createHash } from 'node:crypto';
import { getCompiledTransactionMessageDecoder, getTransactionDecoder, type Address } from '@solana/kit';
import bs58 from 'bs58';
import { indexOf, listOf, natural, objectOf, textOf } from './node-answers.ts';
import { MEMO_PROGRAM, MEMO_V1_PROGRAM, TOKEN_PROGRAM } from './address.ts';

export interface SolanaInstruction {
  readonly program: string;
  readonly accounts: readonly string[];
  readonly data: Uint8Array;
}

interface TokenBalance {
  readonly owner: string;
  readonly mint: string;
  readonly amount: bigint;
}

export interface SolanaTransaction {
  readonly signature: string;
  readonly slot: bigint;
  /** SHA-256 of the message, hex. */
  readonly messageHash: string;
  readonly failed: boolean;
  /** The instructions of the message itself. */
  readonly instructions: readonly SolanaInstruction[];
  /** All executed instructions in order, including the inner instructions of programs. */
  readonly executed: readonly SolanaInstruction[];
  /** The token balances by account, before and after the transaction. */
  readonly before: ReadonlyMap<string, TokenBalance>;
  readonly after: ReadonlyMap<string, TokenBalance>;
}

interface TokenMovement {
  /** Owner of the sending token account; empty if the movements of the transaction cannot be told apart. */
  readonly sender: string;
  readonly amount: bigint;
}

const TRANSFER = 3;
const TRANSFER_CHECKED = 12;
/** More than any transaction can execute within its compute budget. */
const INNER_MAX = 1_024;

export function messageHashOf(message: Uint8Array): string {
  return createHash('sha256').update(message).digest('hex');
}

/**
 * Reads an answer of `getTransaction` in base64. Throws Error if it is inconsistent, or if it is another transaction.
 */
export function readTransaction(answer: unknown, signature: string): SolanaTransaction {
  const { slot, transaction, meta } = objectOf(answer, 'a transaction');
  const [base64] = listOf(transaction, 'its bytes', 2);
  const { messageBytes, signatures } = getTransactionDecoder().decode(
    Buffer.from(textOf(base64, 'its bytes'), 'base64'),
  );
  const [first] = Object.values(signatures);
  if (!first || bs58.encode(Uint8Array.from(first)) !== signature) throw new Error('it is another transaction');
  const message = Uint8Array.from(messageBytes);
  const compiled = getCompiledTransactionMessageDecoder().decode(message);
  if (compiled.version !== 'legacy' && compiled.version !== 0) throw new Error('it has an unknown version');
  const { err, innerInstructions, preTokenBalances, postTokenBalances, loadedAddresses } = objectOf(
    meta,
    'what it did',
  );
  if (err === undefined) throw new Error('it does not say whether it failed');

  const loaded =
    loadedAddresses === undefined || loadedAddresses === null ? {} : objectOf(loadedAddresses, 'its loaded addresses');
  const keys: readonly string[] = [
    ...compiled.staticAccounts,
    ...['writable', 'readonly'].flatMap((kind) =>
      listOf(loaded[kind] ?? [], 'loaded addresses', 256).map((one) => textOf(one, 'an address')),
    ),
  ];
  const keyAt = (at: number) => keys[at] ?? fail('an account that it does not have');
  const balances = (list: unknown) =>
    new Map(
      listOf(list ?? [], 'token balances', 256).map((one) => {
        const { accountIndex, owner, mint, uiTokenAmount } = objectOf(one, 'a token balance');
        const amount = natural(objectOf(uiTokenAmount, 'an amount')['amount'], 'an amount');
        return [
          keyAt(indexOf(accountIndex, 'an account')),
          { owner: textOf(owner, 'an owner'), mint: textOf(mint, 'a mint'), amount },
        ] as const;
      }),
    );

  const instructions = compiled.instructions.map((one): SolanaInstruction => ({
    program: keyAt(one.programAddressIndex),
    accounts: (one.accountIndices ?? []).map(keyAt),
    data: Uint8Array.from(one.data ?? []),
  }));
  const called = new Map<number, readonly SolanaInstruction[]>();
  for (const group of listOf(innerInstructions ?? [], 'inner instructions', 256)) {
    const { index, instructions: list } = objectOf(group, 'inner instructions');
    called.set(
      indexOf(index, 'an instruction'),
      listOf(list, 'inner instructions', INNER_MAX).map((one) => {
        const { programIdIndex, accounts, data } = objectOf(one, 'an instruction');
        return {
          program: keyAt(indexOf(programIdIndex, 'a program')),
          accounts: listOf(accounts, 'its accounts', 256).map((at) => keyAt(indexOf(at, 'an account'))),
          data: bs58.decode(textOf(data, 'its data').slice(0, 16_384)),
        };
      }),
    );
  }
  return {
    signature,
    slot: natural(slot, 'a slot'),
    messageHash: messageHashOf(message),
    failed: err !== null,
    instructions,
    executed: instructions.flatMap((one, at) => [one, ...(called.get(at) ?? [])]),
    before: balances(preTokenBalances),
    after: balances(postTokenBalances),
  };
}

/**
 * The movements of a transaction into a token account. Their sum is the growth of the account's balance. If the
 * instructions say otherwise (other programs, a mint, several instructions in one), the result is one movement without
 * a sender.
 */
export function movementsInto(
  transaction: SolanaTransaction,
  account: Address,
  mint: Address,
): readonly TokenMovement[] {
  if (transaction.failed) return [];
  const held = (balances: ReadonlyMap<string, TokenBalance>) => {
    const balance = balances.get(account);
    return balance?.mint === mint ? balance.amount : 0n;
  };
  const grown = held(transaction.after) - held(transaction.before);
  if (grown <= 0n) return [];
  const transfers = transaction.executed.flatMap((one) => transferInto(one, account, transaction) ?? []);
  const total = transfers.reduce((sum, { amount }) => sum + amount, 0n);
  return total === grown ? transfers : [{ sender: '', amount: grown }];
}

function transferInto(
  { program, accounts, data }: SolanaInstruction,
  account: string,
  { before, after }: SolanaTransaction,
): TokenMovement | null {
  if (program !== TOKEN_PROGRAM || data.length < 9 || (data[0] !== TRANSFER && data[0] !== TRANSFER_CHECKED))
    return null;
  const [source, destination, authority] = data[0] === TRANSFER ? accounts : [accounts[0], accounts[2], accounts[3]];
  if (source === undefined || authority === undefined || destination !== account || source === account) return null;
  const amount = Buffer.from(data).readBigUInt64LE(1);
  if (amount === 0n) return null;
  return { sender: (before.get(source) ?? after.get(source))?.owner ?? authority, amount };
}

/** The first memo of the message itself as text; null without one. */
export function memoOf({ instructions }: Pick<SolanaTransaction, 'instructions'>): string | null {
  const memo = instructions.find(({ program }) => program === MEMO_PROGRAM || program === MEMO_V1_PROGRAM);
  return memo === undefined ? null : Buffer.from(memo.data).toString('utf8');
}

function fail(what: string): never {
  throw new Error(what);
}
