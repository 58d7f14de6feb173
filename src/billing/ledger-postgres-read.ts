import { GENESIS, loadStatements, type Row, type Step } from '#store';
import { earningsOf, escrowOf, FEES } from './ledger.ts';
import type { AccountRow, BudgetRow, LedgerState, LockRow } from './ledger-changes.ts';
import type { ChainHead } from './journal.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';
import { texts } from './ledger-postgres-write.ts';
import { toAccount, toBudget, toOpenLock } from './ledger-rows.ts';
import type { AssumedRows, KnownRows, OwnLocks } from './ledger-memory.ts';

const LEDGER_POSTGRES_SQL = loadStatements(import.meta.url, './sql/ledger-postgres.sql', [
  'pgAccounts',
  'pgLocks',
  'pgBudgets',
  'pgFoldStripes',
  'pgNewBudgets',
  'pgTransfers',
  'pgCommitted',
  'pgBegin',
]);
const BEGIN: Step = { statement: LEDGER_POSTGRES_SQL.pgBegin };
const JOURNAL_SQL = loadStatements(import.meta.url, './sql/journal.sql', ['chainHead']);

/**
 * Rounds to read again. One is enough, unless locks of further accounts appear while the transaction waits for rows.
 */
const READ_ROUNDS = 3;

/**
 * A transaction whose COMMIT was sent but not answered. Its hash in the journal shows later whether it was committed.
 * If it was, these are its results.
 */
export interface Doubt {
  readonly hash: string;
  readonly results: ReadonlyMap<Operation, OperationResult>;
}

export type Send = (steps: readonly Step[]) => Promise<readonly (readonly Row[])[]>;

interface ReadState extends LedgerState {
  readonly head: ChainHead;
  readonly committed: Doubt | undefined;
  /**
   * Accounts that are only credited. Their rows are neither locked nor read, and `account` gives them with zeros: the
   * decision does not depend on their balances, and the credits are added to stripes of this gateway.
   */
  readonly credited: ReadonlySet<string>;
  /** True if the database has a lock with one of these ids. */
  isAnyInUse(ids: readonly string[]): Promise<boolean>;
}

interface ReadOptions {
  readonly chain: string;
  /** True reads the chain's head, and finds out which of the doubts was committed. */
  readonly askHead: boolean;
  readonly doubts: readonly Doubt[];
  /**
   * Locks that need not be read. If they are given, ids of new locks are assumed to be unused; the write fails if one
   * is used. null reads everything.
   */
  readonly own: OwnLocks | null;
}

/**
 * Begins the transaction, locks every account and budget row that the operations touch, and reads these rows. Kinds of
 * rows that the operations do not touch are not queried.
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
  const accountStep: Step = {
    statement: LEDGER_POSTGRES_SQL.pgAccounts,
    params: [texts([...touched.accounts], (id) => id), lockIds],
  };
  const lockStep: Step = { statement: LEDGER_POSTGRES_SQL.pgLocks, params: [lockIds] };
  const budgetStep: Step = { statement: LEDGER_POSTGRES_SQL.pgBudgets, params: [budgetIds, lockIds] };
  const striped = [...touched.accounts].filter(isStriped);
  const foldStep: Step = { statement: LEDGER_POSTGRES_SQL.pgFoldStripes, params: [texts(striped, (id) => id)] };
  const transferStep: Step = {
    statement: LEDGER_POSTGRES_SQL.pgTransfers,
    params: [texts([...touched.transfers], (id) => id)],
  };
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
  // Rows are locked in the order of their ids before stripes are folded, and read again afterwards. Stripes come after
  // budgets, as in a group that is written.
  const folds =
    striped.length === 0 ? [] : [{ ...accountStep }, ...(rows[2] === null ? [] : [{ ...budgetStep }]), foldStep];
  const first = await ask([BEGIN, ...folds, ...rows, touched.transfers.size > 0 ? transferStep : null]);
  const transfers = new Set(first(transferStep).map((row) => row.id));
  let accounts = byId(first(accountStep), toAccount);
  let locks = byId(first(lockStep), toOpenLock);
  let budgets = byId(first(budgetStep), toBudget);
  // A lock may have been made while this transaction waited for account rows. Then the row of its account is not locked
  // yet, so everything that depends on the lock could still change.
  const unlocked = () => locks.values().some((row) => !accounts.has(escrowOf(row.account)));
  for (let round = 0; round < READ_ROUNDS && unlocked(); round += 1) {
    const again = await ask(rows);
    accounts = byId(again(accountStep), toAccount);
    locks = byId(again(lockStep), toOpenLock);
    budgets = byId(again(budgetStep), toBudget);
  }
  if ([...touched.budgets].some((id) => !budgets.has(id))) {
    const [, again] = await send([{ statement: LEDGER_POSTGRES_SQL.pgNewBudgets, params: [budgetIds] }, budgetStep]);
    budgets = byId(again!, toBudget);
  }
  const parentIds = parentsOf(operations, locks);
  if (parentIds.length > 0) {
    // A parent has the same account and budgets as the locks under it, and these rows are locked already. So no other
    // transaction can change the parent's `state` or `lent` before this one ends.
    const [parentRows] = await send([
      { statement: LEDGER_POSTGRES_SQL.pgLocks, params: [texts(parentIds, (id) => id)] },
    ]);
    for (const [id, row] of byId(parentRows!, toOpenLock)) locks.set(id, row);
  }
  let head: ChainHead = { n: 0, hash: GENESIS };
  let committed: Doubt | undefined;
  if (askHead) {
    // Read after the rows are locked. A transaction in doubt that holds these rows is by now committed or lost. One
    // that only arrives later finds rows that have changed, or the number of its group taken.
    const [headRows, committedRows] = await send([
      { statement: JOURNAL_SQL.chainHead, params: [chain] },
      { statement: LEDGER_POSTGRES_SQL.pgCommitted, params: [chain, texts(doubts, ({ hash }) => hash)] },
    ]);
    const row = headRows![0];
    if (row) head = { n: Number(row.n), hash: row.hash as string };
    const hash = committedRows![0]?.hash;
    committed = doubts.find((doubt) => doubt.hash === hash);
  }
  return {
    head,
    committed,
    credited: touched.credited,
    account: (id) => accounts.get(id) ?? (touched.credited.has(id) ? { id, ...NOTHING } : undefined),
    lock: (id) => locks.get(id) ?? own?.get(id),
    budget: (id) => budgets.get(id),
    hasTransfer: (id) => transfers.has(id),
    async isAnyInUse(ids) {
      if (ids.length === 0) return false;
      const [found] = await send([{ statement: LEDGER_POSTGRES_SQL.pgLocks, params: [texts(ids, (id) => id)] }]);
      return found!.length > 0;
    },
  };
}

/** Rows on which a group is decided without reading, and the accounts that it credits in a stripe. */
interface AssumedState extends LedgerState, AssumedRows {
  readonly credited: ReadonlySet<string>;
}

/**
 * The rows for operations that only lock, settle or release, if all of them are known; null if one must be read. The
 * decision on them must be written with assumeSteps, and counts only if it refuses nothing.
 */
export function assumeState(
  operations: readonly Operation[],
  { known, own }: { readonly known: KnownRows; readonly own: OwnLocks },
): AssumedState | null {
  const isUsual = ({ kind, request }: Operation): boolean =>
    (kind === 'lock' && request.parent === undefined) || kind === 'settle' || kind === 'release';
  if (!operations.every(isUsual)) return null;
  const { accounts, credited, locks, budgets } = touch(operations, own);
  if (locks.size > 0) return null;
  const accountRows = new Map<string, AccountRow>([...credited].map((id) => [id, { id, ...NOTHING }]));
  for (const id of accounts) {
    const row = known.account(id);
    if (row === null) return null;
    accountRows.set(id, row);
  }
  const budgetRows = new Map<string, BudgetRow>();
  for (const id of budgets) {
    const row = known.budget(id);
    if (row === null) return null;
    budgetRows.set(id, row);
  }
  return {
    credited,
    accounts: [...accountRows.values()].filter(({ id }) => !credited.has(id)),
    budgets: [...budgetRows.values()],
    account: (id) => accountRows.get(id),
    // A copy, because the decision may be discarded.
    lock: (id) => {
      const row = own.get(id);
      return row && { ...row };
    },
    budget: (id) => budgetRows.get(id),
    hasTransfer: () => false,
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

/**
 * Ids of parents that were not read yet. They are the parents of locks that the operations resolve, and money is given
 * back to them.
 */
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
 * The keys of rows that the operations name. For locks that are read, the statements find the accounts and budgets
 * themselves.
 */
function touch(operations: readonly Operation[], own: OwnLocks | null) {
  const accounts = new Set<string>();
  const credited = new Set<string>();
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
      credited.add(earningsOf(request.provider));
      if (request.feeBps > 0) credited.add(FEES);
    } else if (kind === 'release') touchLock(request.id);
    // Another gateway may have changed `kept` and `expiresAt`, so the lock is always read.
    else locks.add(request.id);
  }
  return { accounts, credited: credited.difference(accounts), locks, budgets, transfers };
}

/** The row of an account that is credited in a stripe, as a decision sees it. */
const NOTHING = { available: 0n, locked: 0n };

/** Accounts that every settlement may credit. */
const isStriped = (id: string): boolean => id === FEES || id.startsWith(earningsOf(''));
