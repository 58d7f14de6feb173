import { loadStatements, rowReader, type Database, type Value } from '#store';
import type { MicroUsd } from '#billing';
import type { ChainEvent, SignedPayment } from './chain.ts';
import { TRANSIT_ACCOUNT } from './books.ts';

/**
 * `received`: stored, and perhaps submitted. `crediting`: seen on the chain, with the arrived amount. `credited`: in
 * the account, while the chain may still undo it. `final`: the chain can no longer undo it. `failed`: it did not
 * arrive; if it arrives later, it is still credited. `reversing`, `reversed`: the chain finally undid it.
 */
type DepositState = 'received' | 'crediting' | 'credited' | 'final' | 'failed' | 'reversing' | 'reversed';

export interface Deposit {
  readonly id: string;
  /** CAIP-2 id. */
  readonly network: string;
  /** The credited account, without the `escrow:` prefix; null: in suspense. */
  readonly account: string | null;
  readonly payer: string;
  /** The promised amount in micro-USD; for a plain transfer the arrived amount. */
  readonly amount: MicroUsd;
  /** null for a plain transfer. */
  readonly payment: SignedPayment | null;
  readonly request: string | null;
  readonly state: DepositState;
  readonly transaction: string | null;
  readonly event: string | null;
  readonly height: bigint | null;
  /** The arrived amount; null until the chain shows it. */
  readonly credited: MicroUsd | null;
  /** The reason why it failed or was reversed. */
  readonly reason: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly looks: number;
}

interface NewDeposit {
  readonly id: string;
  readonly network: string;
  readonly account: string | null;
  readonly payer: string;
  readonly amount: MicroUsd;
  readonly payment: SignedPayment | null;
  readonly request: string | null;
}

const SQL = loadStatements(import.meta.url, './sql/deposits.sql', [
  'insertDeposit',
  'findDeposit',
  'listDeposits',
  'lockChain',
  'noteEvent',
  'notePlace',
  'noteTransaction',
  'markCredited',
  'markFinal',
  'markFailed',
  'beginReversal',
  'endReversal',
  'claimDeposits',
  'forgetDepositClaims',
  'scheduleDeposit',
  'unfinalOfAccount',
  'paidIn',
  'suspendedOfPayer',
  'listSuspense',
  'listOpenPayments',
  'attributeDeposit',
]);

/** A position in a list that is sorted from new to old. */
export interface Before {
  readonly createdAt: number;
  readonly id: string;
}

/** The table of deposits. Every change is one conditional statement, so exactly one caller makes it. */
export interface DepositRows {
  /**
   * Inserts a row. False if it exists already, or if its payer already has `openMax` signed payments with an unknown
   * outcome (null: no limit). No worker looks at the row before `nextLookAt`.
   */
  insert(deposit: NewDeposit, nextLookAt: number, openMax: number | null): Promise<boolean>;
  find(id: string): Promise<Deposit | null>;
  /** The newest first. */
  list(account: string, before: Before | null, limit: number): Promise<readonly Deposit[]>;
  /**
   * Stores the event to credit. Returns the row; null if an event was already stored, or if the event is not final and
   * exceeds a limit for credits that can be undone: the limit of its chain, or the limit for wallets without an account
   * over all chains.
   */
  noteEvent(
    id: string,
    event: ChainEvent,
    limits: { readonly chain: MicroUsd; readonly strangers: MicroUsd },
    nextLookAt: number,
  ): Promise<Deposit | null>;
  notePlace(id: string, event: ChainEvent): Promise<void>;
  noteTransaction(id: string, transaction: string): Promise<void>;
  markCredited(id: string, nextLookAt: number): Promise<boolean>;
  markFinal(id: string): Promise<boolean>;
  markFailed(id: string, reason: string): Promise<boolean>;
  beginReversal(id: string, reason: string): Promise<boolean>;
  endReversal(id: string): Promise<boolean>;
  /** Claims due rows of a network for `claimMs`. */
  claim(network: string, limit: number, claimMs: number): Promise<readonly Deposit[]>;
  /**
   * Makes all waiting rows due. It is for a process that has the database alone and finds rows claimed by a process
   * that died.
   */
  forgetClaims(): Promise<void>;
  /** Sets the time of the next look. null: nothing can change any more. */
  schedule(id: string, nextLookAt: number | null): Promise<void>;
  /**
   * Whether the account has money that its chain may still undo, from a deposit that existed at `at` (epoch
   * milliseconds).
   */
  unfinal(account: string, at: number): Promise<boolean>;
  /** All deposits in suspense, the newest first. */
  suspense(before: Before | null, limit: number): Promise<readonly Deposit[]>;
  /** The sum of the account's deposits that were not undone. */
  paidIn(account: string): Promise<MicroUsd>;
  /** The oldest 100 deposits in suspense from an address, on one network or on all (null). */
  suspended(payer: string, network: string | null): Promise<readonly Deposit[]>;
  /**
   * A page of the signed payments of a network that may still arrive or be undone. `after`: the last id of the page
   * before.
   */
  openPayments(network: string, after: string): Promise<readonly Deposit[]>;
  /**
   * Sets the account of a deposit in suspense, once. The row is then due, so that a worker moves the money if this
   * caller does not.
   */
  attribute(id: string, account: string): Promise<boolean>;
}

export function createDepositRows(database: Database, { now }: { readonly now: () => number }): DepositRows {
  const changed = async (...query: Parameters<Database['query']>) => (await database.query(...query)).length > 0;
  return {
    insert: ({ id, network, account, payer, amount, payment, request }, nextLookAt, openMax) =>
      changed(SQL.insertDeposit, [
        id,
        network,
        account,
        payer,
        amount,
        payment === null ? null : paymentText(payment),
        request,
        now(),
        nextLookAt,
        openMax,
      ]),
    async find(id) {
      const [row] = await database.query(SQL.findDeposit, [id]);
      return row ? toDeposit(row) : null;
    },
    list: async (account, before, limit) =>
      (
        await database.query(SQL.listDeposits, [
          account,
          before?.createdAt ?? Number.MAX_SAFE_INTEGER,
          before?.id ?? '',
          limit,
        ])
      ).map(toDeposit),
    async noteEvent(id, { transaction, id: event, height, amount, final }, limits, nextLookAt) {
      const params: Value[] = [
        id,
        transaction,
        event,
        height,
        amount,
        now(),
        nextLookAt,
        final ? 1 : 0,
        limits.chain,
        limits.strangers,
      ];
      const noting = { statement: SQL.noteEvent, params };
      // Concurrent statements would not see each other's amounts in the sum and could exceed the limit together, so
      // they take a lock. SQLite has only one writer and needs no lock.
      const alone = final || database.engine === 'sqlite';
      const [row] = alone
        ? await database.query(SQL.noteEvent, params)
        : (await database.batch([{ statement: SQL.lockChain, params: [] }, noting]))[1]!;
      return row ? toDeposit(row) : null;
    },
    async notePlace(id, { transaction, id: event, height }) {
      await database.query(SQL.notePlace, [id, transaction, event, height, now()]);
    },
    async noteTransaction(id, transaction) {
      await database.query(SQL.noteTransaction, [id, transaction, now()]);
    },
    markCredited: (id, nextLookAt) => changed(SQL.markCredited, [id, now(), nextLookAt]),
    markFinal: (id) => changed(SQL.markFinal, [id, now()]),
    markFailed: (id, reason) => changed(SQL.markFailed, [id, reason, now()]),
    beginReversal: (id, reason) => changed(SQL.beginReversal, [id, reason, now()]),
    endReversal: (id) => changed(SQL.endReversal, [id, now()]),
    claim: async (network, limit, claimMs) =>
      (await database.query(SQL.claimDeposits, [now(), now() + claimMs, limit, network])).map(toDeposit),
    async forgetClaims() {
      await database.query(SQL.forgetDepositClaims, [now()]);
    },
    async schedule(id, nextLookAt) {
      await database.query(SQL.scheduleDeposit, [id, nextLookAt]);
    },
    unfinal: async (account, at) => (await database.query(SQL.unfinalOfAccount, [account, at]))[0]!['deposits'] !== 0n,
    suspense: async (before, limit) =>
      (
        await database.query(SQL.listSuspense, [before?.createdAt ?? Number.MAX_SAFE_INTEGER, before?.id ?? '', limit])
      ).map(toDeposit),
    paidIn: async (account) => (await database.query(SQL.paidIn, [account]))[0]!['amount'] as bigint,
    suspended: async (payer, network) =>
      (await database.query(SQL.suspendedOfPayer, [payer, network ?? ''])).map(toDeposit),
    openPayments: async (network, after) =>
      (await database.query(SQL.listOpenPayments, [network, after])).map(toDeposit),
    attribute: (id, account) => changed(SQL.attributeDeposit, [id, account, now(), TRANSIT_ACCOUNT]),
  };
}

/** Amounts are strings in JSON. */
function paymentText(payment: SignedPayment): string {
  return JSON.stringify({ ...payment, amount: String(payment.amount) });
}

function toPayment(text: string): SignedPayment {
  const payment = JSON.parse(text) as Omit<SignedPayment, 'amount'> & { readonly amount: string };
  return { ...payment, amount: BigInt(payment.amount) };
}

const toDeposit = rowReader<Deposit>(
  {
    payment: (text) => (text === null ? null : toPayment(text as string)),
    createdAt: Number,
    updatedAt: Number,
    looks: Number,
  },
  { transaction_id: 'transaction' },
);
