import { isOne, loadStatements, rowReader, type Database, type Statement } from '#store';
import type { AccountName, MicroUsd } from '#billing';
import { accountFeeOf, type SignedPayout } from './chain.ts';
import type { Before } from './deposit-rows.ts';

/**
 * `requested`: stored. `debited`: taken from its account. `queued`: waits for its signature and can still be canceled.
 * `signed`: may be on the chain. `paid`: final on the chain. `returning`, `returned`: given back. `refused`: nothing
 * was taken.
 */
export type WithdrawalState =
  | 'requested'
  | 'debited'
  | 'queued'
  | 'signed'
  | 'paid'
  | 'returning'
  | 'returned'
  | 'refused';

export interface Withdrawal {
  readonly id: string;
  /** CAIP-2 id. */
  readonly network: string;
  readonly account: string;
  /** The ledger account from which it is taken: the owner's escrow or earnings. */
  readonly source: AccountName;
  readonly address: string;
  readonly amount: MicroUsd;
  /**
   * The operator's fee, a part of `amount`; the address gets the rest. After the signing it includes the fee of a token
   * account in `signed`.
   */
  readonly fee: MicroUsd;
  /** The gateway signs the payout and its owner submits it. */
  readonly handedOut: boolean;
  readonly state: WithdrawalState;
  readonly signed: SignedPayout | null;
  readonly transaction: string | null;
  readonly height: bigint | null;
  /** The reason why it was given back or refused, or what it waits for. */
  readonly reason: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly looks: number;
}

/** The reason in a withdrawal or an act that its owner canceled. */
export const CANCELED = 'Canceled';

export type NewWithdrawal = Pick<
  Withdrawal,
  'id' | 'network' | 'account' | 'source' | 'address' | 'amount' | 'handedOut'
>;

const SQL = loadStatements(import.meta.url, './sql/withdrawals.sql', [
  'mayWithdraw',
  'insertWithdrawal',
  'findWithdrawal',
  'listWithdrawals',
  'listWithdrawalsOfSource',
  'moveWithdrawal',
  'signWithdrawal',
  'resignWithdrawal',
  'noteSent',
  'noteHeight',
  'markPaid',
  'takeBackWithdrawal',
  'claimWithdrawals',
  'forgetWithdrawalClaims',
  'scheduleWithdrawal',
  'withdrawnSince',
  'unsignedOfAccount',
  'signedWithdrawals',
  'listLeavingWithdrawals',
  'signedAmount',
]);

/** The table of withdrawals. Every change is one conditional statement, so exactly one caller makes it. */
export interface WithdrawalRows {
  /** Whether the operator has frozen or closed an account. */
  isStopped(account: string): Promise<boolean>;
  insert(withdrawal: NewWithdrawal, nextLookAt: number, fee?: MicroUsd): Promise<boolean>;
  find(id: string): Promise<Withdrawal | null>;
  /** The newest first. */
  list(account: string, before: Before | null, limit: number): Promise<readonly Withdrawal[]>;
  /** The same by the ledger account from which they are taken. */
  listOf(source: AccountName, before: Before | null, limit: number): Promise<readonly Withdrawal[]>;
  /**
   * Moves a withdrawal from one state to another. False if it is no longer in `from`. `nextLookAt` null: it is
   * finished.
   */
  move(
    id: string,
    from: WithdrawalState,
    to: WithdrawalState,
    nextLookAt: number | null,
    reason?: string,
  ): Promise<boolean>;
  /**
   * Stores the signed payout of a queued withdrawal and adds its tokenAccountFee to the fee. False if it is no longer
   * queued, or if its chain is halted.
   */
  sign(id: string, signed: SignedPayout): Promise<boolean>;
  /** Replaces a lost signed payout and its tokenAccountFee. False if `previous` is no longer the stored one. */
  resign(id: string, previous: SignedPayout, signed: SignedPayout): Promise<boolean>;
  noteSent(id: string, transaction: string): Promise<void>;
  noteHeight(id: string, transaction: string, height: bigint): Promise<void>;
  markPaid(id: string, transaction: string, height: bigint): Promise<boolean>;
  /**
   * Makes the gateway submit a payout that its owner was to submit. False if the gateway already submits it, or if it
   * is finished.
   */
  takeBack(id: string): Promise<boolean>;
  /** Claims due rows of a network for `claimMs`. */
  claim(network: string, limit: number, claimMs: number): Promise<readonly Withdrawal[]>;
  /**
   * Makes all waiting rows due. It is for a process that has the database alone and finds rows claimed by a process
   * that died.
   */
  forgetClaims(): Promise<void>;
  schedule(id: string, nextLookAt: number): Promise<void>;
  /** The sum taken from a source after `since` and not given back. */
  takenSince(source: AccountName, since: number): Promise<MicroUsd>;
  /** Withdrawals of a source that are debited, queued or being given back. */
  unsigned(source: AccountName): Promise<readonly Withdrawal[]>;
  /** A page of signed withdrawals that are not known to be final, by id. */
  signed(network: string, after: string): Promise<readonly Withdrawal[]>;
  /** The same, with the withdrawals that were paid above a height. */
  leaving(network: string, height: bigint, after: string): Promise<readonly Withdrawal[]>;
  /** The sum of the payouts of signed withdrawals. */
  signedAmount(network: string): Promise<MicroUsd>;
}

export function createWithdrawalRows(database: Database, { now }: { readonly now: () => number }): WithdrawalRows {
  const changed = async (...query: Parameters<Database['query']>) => (await database.query(...query)).length > 0;
  const page = async (statement: Statement, whose: string, before: Before | null, limit: number) =>
    (
      await database.query(statement, [whose, before?.createdAt ?? Number.MAX_SAFE_INTEGER, before?.id ?? '', limit])
    ).map(toWithdrawal);
  return {
    isStopped: async (account) => (await database.query(SQL.mayWithdraw, [account])).length === 0,
    insert: ({ id, network, account, source, address, amount, handedOut }, nextLookAt, fee = 0n) =>
      changed(SQL.insertWithdrawal, [
        id,
        network,
        account,
        source,
        address,
        amount,
        handedOut ? 1 : 0,
        now(),
        nextLookAt,
        fee,
      ]),
    async find(id) {
      const [row] = await database.query(SQL.findWithdrawal, [id]);
      return row ? toWithdrawal(row) : null;
    },
    list: (account, before, limit) => page(SQL.listWithdrawals, account, before, limit),
    listOf: (source, before, limit) => page(SQL.listWithdrawalsOfSource, source, before, limit),
    move: (id, from, to, nextLookAt, reason) =>
      changed(SQL.moveWithdrawal, [id, from, to, reason ?? null, now(), nextLookAt]),
    sign: (id, signed) =>
      changed(SQL.signWithdrawal, [id, signedText(signed), signed.transaction, now(), accountFeeOf(signed)]),
    resign: (id, previous, signed) =>
      changed(SQL.resignWithdrawal, [
        id,
        signedText(previous),
        signedText(signed),
        signed.transaction,
        now(),
        accountFeeOf(signed) - accountFeeOf(previous),
      ]),
    async noteSent(id, transaction) {
      await database.query(SQL.noteSent, [id, transaction, now()]);
    },
    async noteHeight(id, transaction, height) {
      await database.query(SQL.noteHeight, [id, transaction, height, now()]);
    },
    markPaid: (id, transaction, height) => changed(SQL.markPaid, [id, transaction, height, now()]),
    takeBack: (id) => changed(SQL.takeBackWithdrawal, [id, now()]),
    claim: async (network, limit, claimMs) =>
      (await database.query(SQL.claimWithdrawals, [now(), now() + claimMs, limit, network])).map(toWithdrawal),
    async forgetClaims() {
      await database.query(SQL.forgetWithdrawalClaims, [now()]);
    },
    async schedule(id, nextLookAt) {
      await database.query(SQL.scheduleWithdrawal, [id, nextLookAt]);
    },
    takenSince: async (source, since) =>
      (await database.query(SQL.withdrawnSince, [source, since]))[0]!['amount'] as bigint,
    unsigned: async (source) => (await database.query(SQL.unsignedOfAccount, [source])).map(toWithdrawal),
    signedAmount: async (network) => (await database.query(SQL.signedAmount, [network]))[0]!['amount'] as bigint,
    leaving: async (network, height, after) =>
      (await database.query(SQL.listLeavingWithdrawals, [network, height, after])).map(toWithdrawal),
    signed: async (network, after) => (await database.query(SQL.signedWithdrawals, [network, after])).map(toWithdrawal),
  };
}

/** The text is deterministic, because `resign` finds the lost payout by it. */
const signedText = ({ text, transaction, tokenAccountFee }: SignedPayout) =>
  JSON.stringify({ text, transaction, tokenAccountFee: tokenAccountFee?.toString() });

/**
 * A text that cannot be read becomes the text of a payout that its chain cannot read. So one such row does not keep
 * others from being read.
 */
function toSigned(text: string): SignedPayout {
  try {
    const { tokenAccountFee, ...signed } = JSON.parse(text) as Omit<SignedPayout, 'tokenAccountFee'> & {
      /** A decimal number. */
      readonly tokenAccountFee?: string;
    };
    return tokenAccountFee === undefined ? signed : { ...signed, tokenAccountFee: BigInt(tokenAccountFee) };
  } catch {
    return { text, transaction: null };
  }
}

const toWithdrawal = rowReader<Withdrawal>(
  {
    handedOut: isOne,
    signed: (text) => (text === null ? null : toSigned(text as string)),
    createdAt: Number,
    updatedAt: Number,
    looks: Number,
  },
  { transaction_id: 'transaction' },
);
