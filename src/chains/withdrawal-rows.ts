import { isOne, loadStatement, rowReader, type Database, type Statement } from '#store';
import type { AccountName, MicroUsd } from '#billing';
import { accountFeeOf, type SignedPayout } from './chain.ts';
import type { Before } from './deposit-rows.ts';

/**
 * `requested`: written down. `debited`: taken from its account. `queued`: to be signed; until then it can be
 * canceled. `signed`: may be on the chain. `paid`: final there. `returning`, `returned`: given back. `refused`:
 * nothing was taken.
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
  /** CAIP-2. */
  readonly network: string;
  /** Whose it is. */
  readonly account: string;
  /** Ledger account that it is taken from: the account's escrow or earnings. */
  readonly source: AccountName;
  /** Receiving address. */
  readonly address: string;
  /** Taken from the source. */
  readonly amount: MicroUsd;
  /**
   * Of it, kept by the operator: the address is paid the rest. Once it is signed, with what `signed` keeps for a token
   * account.
   */
  readonly fee: MicroUsd;
  /** The gateway signs, and leaves it to its owner to submit it. */
  readonly handedOut: boolean;
  readonly state: WithdrawalState;
  readonly signed: SignedPayout | null;
  readonly transaction: string | null;
  readonly height: bigint | null;
  /** Why it was given back or refused, or what it waits for. */
  readonly reason: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly looks: number;
}

export type NewWithdrawal = Pick<
  Withdrawal,
  'id' | 'network' | 'account' | 'source' | 'address' | 'amount' | 'handedOut'
>;

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const INSERT = load('insert-withdrawal');
const FIND = load('find-withdrawal');
const LIST = load('list-withdrawals');
const LIST_OF = load('list-withdrawals-of-source');
const MOVE = load('move-withdrawal');
const SIGN = load('sign-withdrawal');
const RESIGN = load('resign-withdrawal');
const NOTE_SENT = load('note-sent');
const NOTE_HEIGHT = load('note-height');
const MARK_PAID = load('mark-paid');
const TAKE_BACK = load('take-back-withdrawal');
const CLAIM = load('claim-withdrawals');
const FORGET_CLAIMS = load('forget-withdrawal-claims');
const SCHEDULE = load('schedule-withdrawal');
const SINCE = load('withdrawn-since');
const UNSIGNED = load('unsigned-of-account');
const SIGNED = load('signed-withdrawals');
const LEAVING = load('list-leaving-withdrawals');
const SIGNED_AMOUNT = load('signed-amount');

/**
 * The table of withdrawals. Every change is one conditional statement, so that it is made once by whoever comes
 * first.
 */
export interface WithdrawalRows {
  insert(withdrawal: NewWithdrawal, nextLookAt: number, fee?: MicroUsd): Promise<boolean>;
  find(id: string): Promise<Withdrawal | null>;
  /** The newest first. */
  list(account: string, before: Before | null, limit: number): Promise<readonly Withdrawal[]>;
  /** The same of a ledger account that they are taken from. */
  listOf(source: AccountName, before: Before | null, limit: number): Promise<readonly Withdrawal[]>;
  /** One step; false where it is no longer at `from`. `nextLookAt` null: it is over. */
  move(
    id: string,
    from: WithdrawalState,
    to: WithdrawalState,
    nextLookAt: number | null,
    reason?: string,
  ): Promise<boolean>;
  /**
   * Keeps what was signed of a queued one, and adds its tokenAccountFee to the fee; false where it is not queued any
   * more, or its chain is halted.
   */
  sign(id: string, signed: SignedPayout): Promise<boolean>;
  /** Keeps what was signed in the place of what is lost, and its tokenAccountFee in the place of the other's. */
  resign(id: string, previous: SignedPayout, signed: SignedPayout): Promise<boolean>;
  noteSent(id: string, transaction: string): Promise<void>;
  noteHeight(id: string, transaction: string, height: bigint): Promise<void>;
  markPaid(id: string, transaction: string, height: bigint): Promise<boolean>;
  /** The gateway submits what its owner was to submit; false where it was to do so already, or it is over. */
  takeBack(id: string): Promise<boolean>;
  /** Rows of a network that are due, taken for `claimMs`. */
  claim(network: string, limit: number, claimMs: number): Promise<readonly Withdrawal[]>;
  /** Makes all due that waits: for one who has the database to itself, and finds what a process left that died. */
  forgetClaims(): Promise<void>;
  schedule(id: string, nextLookAt: number): Promise<void>;
  /** The sum that was taken from a source after `since`, and not given back. */
  takenSince(source: AccountName, since: number): Promise<MicroUsd>;
  /** Withdrawals of a source that are not signed, or not given back yet. */
  unsigned(source: AccountName): Promise<readonly Withdrawal[]>;
  /** Signed withdrawals that are not seen final, page by page in the order of ids. */
  signed(network: string, after: string): Promise<readonly Withdrawal[]>;
  /** The same with those that were paid above a height. */
  leaving(network: string, height: bigint, after: string): Promise<readonly Withdrawal[]>;
  /** The sum of the signed ones. */
  signedAmount(network: string): Promise<MicroUsd>;
}

export function createWithdrawalRows(database: Database, { now }: { readonly now: () => number }): WithdrawalRows {
  const changed = async (...query: Parameters<Database['query']>) => (await database.query(...query)).length > 0;
  const page = async (statement: Statement, whose: string, before: Before | null, limit: number) =>
    (
      await database.query(statement, [whose, before?.createdAt ?? Number.MAX_SAFE_INTEGER, before?.id ?? '', limit])
    ).map(toWithdrawal);
  return {
    insert: ({ id, network, account, source, address, amount, handedOut }, nextLookAt, fee = 0n) =>
      changed(INSERT, [id, network, account, source, address, amount, handedOut ? 1 : 0, now(), nextLookAt, fee]),
    async find(id) {
      const [row] = await database.query(FIND, [id]);
      return row ? toWithdrawal(row) : null;
    },
    list: (account, before, limit) => page(LIST, account, before, limit),
    listOf: (source, before, limit) => page(LIST_OF, source, before, limit),
    move: (id, from, to, nextLookAt, reason) => changed(MOVE, [id, from, to, reason ?? null, now(), nextLookAt]),
    sign: (id, signed) => changed(SIGN, [id, signedText(signed), signed.transaction, now(), accountFeeOf(signed)]),
    resign: (id, previous, signed) =>
      changed(RESIGN, [
        id,
        signedText(previous),
        signedText(signed),
        signed.transaction,
        now(),
        accountFeeOf(signed) - accountFeeOf(previous),
      ]),
    async noteSent(id, transaction) {
      await database.query(NOTE_SENT, [id, transaction, now()]);
    },
    async noteHeight(id, transaction, height) {
      await database.query(NOTE_HEIGHT, [id, transaction, height, now()]);
    },
    markPaid: (id, transaction, height) => changed(MARK_PAID, [id, transaction, height, now()]),
    takeBack: (id) => changed(TAKE_BACK, [id, now()]),
    claim: async (network, limit, claimMs) =>
      (await database.query(CLAIM, [now(), now() + claimMs, limit, network])).map(toWithdrawal),
    async forgetClaims() {
      await database.query(FORGET_CLAIMS, [now()]);
    },
    async schedule(id, nextLookAt) {
      await database.query(SCHEDULE, [id, nextLookAt]);
    },
    takenSince: async (source, since) => (await database.query(SINCE, [source, since]))[0]!['amount'] as bigint,
    unsigned: async (source) => (await database.query(UNSIGNED, [source])).map(toWithdrawal),
    signedAmount: async (network) => (await database.query(SIGNED_AMOUNT, [network]))[0]!['amount'] as bigint,
    leaving: async (network, height, after) =>
      (await database.query(LEAVING, [network, height, after])).map(toWithdrawal),
    signed: async (network, after) => (await database.query(SIGNED, [network, after])).map(toWithdrawal),
  };
}

/** Always the same for the same: what is lost is found by it. */
const signedText = ({ text, transaction, tokenAccountFee }: SignedPayout) =>
  JSON.stringify({ text, transaction, tokenAccountFee: tokenAccountFee?.toString() });

function toSigned(kept: string): SignedPayout {
  const { tokenAccountFee, ...signed } = JSON.parse(kept) as Omit<SignedPayout, 'tokenAccountFee'> & {
    /** Decimal. */
    readonly tokenAccountFee?: string;
  };
  return tokenAccountFee === undefined ? signed : { ...signed, tokenAccountFee: BigInt(tokenAccountFee) };
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
