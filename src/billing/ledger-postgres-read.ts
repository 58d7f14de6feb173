import { GENESIS, loadStatement, type Row, type Step } from '#store';
import { earningsOf, escrowOf, FEES } from './ledger.ts';
import type { LedgerState, LockRow } from './ledger-changes.ts';
import type { ChainHead } from './ledger-journal.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';
import { texts } from './ledger-postgres-write.ts';
import { toAccount, toBudget, toOpenLock } from './ledger-rows.ts';
import type { OwnLocks } from './own-locks.ts';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const BEGIN: Step = { statement: load('pg-begin') };
const ACCOUNTS = load('pg-accounts');
const LOCKS = load('pg-locks');
const BUDGETS = load('pg-budgets');
const NEW_BUDGETS = load('pg-new-budgets');
const TRANSFERS = load('pg-transfers');
const CHAIN_HEAD = load('chain-head');
const COMMITTED = load('pg-committed');

/** Once is enough unless locks of still other accounts appear while those are waited for. */
const READ_ROUNDS = 3;

/**
 * A transaction whose COMMIT was sent and not answered. Its hash says later whether it happened, and then these are
 * its results.
 */
export interface Doubt {
  readonly hash: string;
  readonly results: ReadonlyMap<Operation, OperationResult>;
}

export type Send = (steps: readonly Step[]) => Promise<readonly (readonly Row[])[]>;

interface ReadState extends LedgerState {
  readonly head: ChainHead;
  readonly committed: Doubt | undefined;
  /** True where the database has a lock with one of these ids. */
  isAnyInUse(ids: readonly string[]): Promise<boolean>;
}

interface ReadOptions {
  readonly chain: string;
  /** True asks for the chain's head, and which of the doubts has happened. */
  readonly askHead: boolean;
  readonly doubts: readonly Doubt[];
  /**
   * Locks that need not be read. With them a new id is taken for unused as well: the write is refused where it is not.
   * null reads all.
   */
  readonly own: OwnLocks | null;
}

/**
 * Begins the transaction, locks every account and budget that the operations touch, and reads their rows. A kind of
 * row that they do not touch is not asked for.
 */
export async function readState(
  send: Send,
  operations: readonly Operation[],
  { chain, askHead, doubts, own }: ReadOptions,
): Promise<ReadState> {
  const touched = touch(operations, own);
  const lockIds = texts([...touched.locks], (id) => id);
  const budgetIds = texts([...touched.budgets], (id) => id);
  const hasLocks = touched.locks.size > 0;
  const accountStep: Step = { statement: ACCOUNTS, params: [texts([...touched.accounts], (id) => id), lockIds] };
  const lockStep: Step = { statement: LOCKS, params: [lockIds] };
  const budgetStep: Step = { statement: BUDGETS, params: [budgetIds, lockIds] };
  const transferStep: Step = { statement: TRANSFERS, params: [texts([...touched.transfers], (id) => id)] };
  const ask = async (steps: readonly (Step | null)[]) => {
    const rows = new Map<Step, readonly Row[]>();
    const asked = steps.filter((step) => step !== null);
    const answers = await send(asked);
    asked.forEach((step, index) => rows.set(step, answers[index]!));
    return (step: Step) => rows.get(step) ?? [];
  };
  const rows = [
    accountStep,
    hasLocks ? lockStep : null,
    hasLocks || touched.budgets.size > 0 ? budgetStep : null,
  ] as const;
  const first = await ask([BEGIN, ...rows, touched.transfers.size > 0 ? transferStep : null]);
  const transfers = new Set(first(transferStep).map((row) => row.id));
  let accounts = byId(first(accountStep), toAccount);
  let locks = byId(first(lockStep), toOpenLock);
  let budgets = byId(first(budgetStep), toBudget);
  // A lock that was made while its account was waited for: its account is not locked yet, and whatever hangs on the
  // lock could change meanwhile.
  const unlocked = () => locks.values().some((row) => !accounts.has(escrowOf(row.account)));
  for (let round = 0; round < READ_ROUNDS && unlocked(); round += 1) {
    const again = await ask(rows);
    accounts = byId(again(accountStep), toAccount);
    locks = byId(again(lockStep), toOpenLock);
    budgets = byId(again(budgetStep), toBudget);
  }
  if ([...touched.budgets].some((id) => !budgets.has(id))) {
    const [, again] = await send([{ statement: NEW_BUDGETS, params: [budgetIds] }, budgetStep]);
    budgets = byId(again!, toBudget);
  }
  const parentIds = parentsOf(operations, locks);
  if (parentIds.length > 0) {
    // Their accounts and budgets are those of the locks under them, and locked: no lock is made under one of
    // another account. So whoever reads what a parent has lent, or that it is held, is the only one who can change
    // it until the end of the transaction.
    const [parentRows] = await send([{ statement: LOCKS, params: [texts(parentIds, (id) => id)] }]);
    for (const [id, row] of byId(parentRows!, toOpenLock)) locks.set(id, row);
  }
  let head: ChainHead = { n: 0, hash: GENESIS };
  let committed: Doubt | undefined;
  if (askHead) {
    // Asked after the rows are locked: a transaction in doubt held them, so by now it has happened or never will.
    const [headRows, committedRows] = await send([
      { statement: CHAIN_HEAD, params: [chain] },
      { statement: COMMITTED, params: [chain, texts(doubts, ({ hash }) => hash)] },
    ]);
    const row = headRows![0];
    if (row) head = { n: Number(row.n), hash: row.hash as string };
    const hash = committedRows![0]?.hash;
    committed = doubts.find((doubt) => doubt.hash === hash);
  }
  return {
    head,
    committed,
    account: (id) => accounts.get(id),
    lock: (id) => locks.get(id) ?? own?.get(id),
    budget: (id) => budgets.get(id),
    hasTransfer: (id) => transfers.has(id),
    async isAnyInUse(ids) {
      if (ids.length === 0) return false;
      const [found] = await send([{ statement: LOCKS, params: [texts(ids, (id) => id)] }]);
      return found!.length > 0;
    },
  };
}

function byId<T extends { readonly id: string }>(rows: readonly Row[], convert: (row: Row) => T): Map<string, T> {
  const found = new Map<string, T>();
  for (const row of rows) {
    const converted = convert(row);
    found.set(converted.id, converted);
  }
  return found;
}

/** Locks that were not read and that something is given back to: the parents of those that the operations resolve. */
function parentsOf(operations: readonly Operation[], locks: ReadonlyMap<string, LockRow>): readonly string[] {
  const parents = new Set<string>();
  for (const { kind, request } of operations) {
    if (kind !== 'settle' && kind !== 'release' && kind !== 'expire') continue;
    const parent = locks.get(request.id)?.parent ?? null;
    if (parent !== null && !locks.has(parent)) parents.add(parent);
  }
  return [...parents];
}

/**
 * The keys that the operations name; the accounts and budgets of locks that are read are found by the statements
 * themselves.
 */
function touch(operations: readonly Operation[], own: OwnLocks | null) {
  const accounts = new Set<string>();
  const locks = new Set<string>();
  const budgets = new Set<string>();
  const transfers = new Set<string>();
  const touchLock = (id: string) => {
    const row = own?.get(id);
    if (row === undefined) locks.add(id);
    else {
      accounts.add(escrowOf(row.account));
      for (const id of row.budgets) budgets.add(id);
    }
  };
  for (const { kind, request } of operations) {
    if (kind === 'transfer') {
      transfers.add(request.id);
      accounts.add(request.from);
      accounts.add(request.to);
    } else if (kind === 'lock') {
      if (own === null) locks.add(request.id);
      accounts.add(escrowOf(request.account));
      if (request.parent !== undefined) locks.add(request.parent);
      else for (const budget of request.budgets ?? []) budgets.add(budget.id);
    } else if (kind === 'settle') {
      touchLock(request.id);
      accounts.add(earningsOf(request.provider));
      if (request.feeBps > 0) accounts.add(FEES);
    } else if (kind === 'release') touchLock(request.id);
    // Whether it is kept, and until when, another gateway may have changed.
    else locks.add(request.id);
  }
  return { accounts, locks, budgets, transfers };
}
