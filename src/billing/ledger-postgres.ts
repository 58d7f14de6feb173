import { randomBytes } from 'node:crypto';
import {
  DatabaseError,
  GENESIS,
  loadStatement,
  type PostgresDatabase,
  type PostgresSession,
  type Row,
  type Step,
} from '#store';
import { earningsOf, escrowOf, FEES } from './ledger.ts';
import type { LedgerState, LockRow } from './ledger-changes.ts';
import { decide, type Decision } from './ledger-decide.ts';
import type { Attempt, Engine } from './ledger-engine.ts';
import { hashBatch, type ChainHead } from './ledger-journal.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';
import { changeParams, commitParams, texts } from './ledger-postgres-write.ts';
import { readAccount, readBudget, toAccount, toBudget, toOpenLock } from './ledger-rows.ts';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const SETUP = [load('pg-setup-plans'), load('pg-setup-limits'), load('pg-setup-durable')];
const BEGIN: Step = { statement: load('pg-begin') };
const COMMIT: Step = { statement: load('pg-commit-transaction') };
const ROLLBACK: Step = { statement: load('pg-rollback') };
const ACCOUNTS = load('pg-accounts');
const LOCKS = load('pg-locks');
const BUDGETS = load('pg-budgets');
const NEW_BUDGETS = load('pg-new-budgets');
const TRANSFERS = load('pg-transfers');
const CHAIN_HEAD = load('chain-head');
const COMMITTED = load('pg-committed');
const WRITE = load('pg-commit');
const CHANGE_LOCKS = load('pg-change-locks');

/** A round trip that takes longer is taken for lost, with its connection. */
const ATTEMPT_MS = 4_000;

/** Once is enough unless locks of still other accounts appear while those are waited for. */
const READ_ROUNDS = 3;

/** Serialization failure, deadlock, lock timeout; an id, a batch number or a lock that another gateway got first. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', '55P03', 'unique_violation', 'not_null_violation']);

/**
 * A transaction whose COMMIT was sent and not answered. Its hash says later whether it happened, and then these are
 * its results.
 */
interface Doubt {
  readonly hash: string;
  readonly results: ReadonlyMap<Operation, OperationResult>;
}

/**
 * The PostgreSQL engine: one connection of its own, two round trips a group. The first locks the rows in id order
 * and reads them; then the decision is made here; the second writes everything in one statement and commits.
 */
export function createPostgresEngine(database: PostgresDatabase, now: () => number): Engine {
  const chain = `gateway-${randomBytes(8).toString('hex')}`;
  let session: PostgresSession | null = null;
  // Null when it must be asked for: at the start, and after every failure.
  let head: ChainHead | null = null;

  const send = async (steps: readonly Step[]): Promise<readonly (readonly Row[])[]> => {
    const used = session!;
    const timer = setTimeout(() => used.destroy(), ATTEMPT_MS);
    try {
      return await used.pipeline(steps);
    } finally {
      clearTimeout(timer);
    }
  };

  const attempt = async (operations: readonly Operation[], doubts: Doubt[]): Promise<readonly OperationResult[]> => {
    if (!session || session.lost) session = await database.session(SETUP);
    const state = await readState(send, operations, { chain, askHead: head === null, doubts });
    if (state.committed) {
      const { results } = state.committed;
      await send([ROLLBACK]);
      return operations.map((operation) => results.get(operation)!);
    }
    const { n, hash: prev } = head ?? state.head;
    const at = now();
    const decision = decide(state, operations, at);
    const { changedLocks } = decision;
    const changes: readonly Step[] =
      changedLocks.length === 0 ? [] : [{ statement: CHANGE_LOCKS, params: changeParams(changedLocks) }];
    if (decision.journal.length === 0) {
      // Keeping a lock has no row. It needs none to be recognised after a lost answer either: done twice, it is the
      // same.
      await send(changes.length === 0 ? [ROLLBACK] : [...changes, COMMIT]);
      return decision.results;
    }
    const hash = hashBatch(prev, chain, n + 1, at, decision.journal);
    const doubt: Doubt = { hash, results: resultsByOperation(operations, decision) };
    try {
      await send([
        { statement: WRITE, params: commitParams(decision, { chain, n: n + 1, at, prev, hash }) },
        ...changes,
        COMMIT,
      ]);
    } catch (error) {
      if (error instanceof DatabaseError && error.unavailable) doubts.push(doubt);
      throw error;
    }
    head = { n: n + 1, hash };
    return decision.results;
  };

  return {
    chain,
    account: (id) => readAccount(database.query, id),
    budget: (id) => readBudget(database.query, id),
    begin(): Attempt {
      const doubts: Doubt[] = [];
      return async (operations) => {
        try {
          return await attempt(operations, doubts);
        } catch (error) {
          head = null;
          // Ends the transaction that the error broke; a lost connection has ended its own.
          if (session && !session.lost) await send([ROLLBACK]).catch(() => session?.destroy());
          throw error;
        }
      };
    },
    isConflict: (error) => CONFLICTS.has(error.code),
    async close() {
      await session?.close().catch(() => {});
    },
  };
}

function resultsByOperation(
  operations: readonly Operation[],
  decision: Decision,
): ReadonlyMap<Operation, OperationResult> {
  return new Map(operations.map((operation, index) => [operation, decision.results[index]!]));
}

type Send = (steps: readonly Step[]) => Promise<readonly (readonly Row[])[]>;

interface ReadState extends LedgerState {
  readonly head: ChainHead;
  readonly committed: Doubt | undefined;
}

/** Begins the transaction, locks every account and budget that the operations touch, and reads their rows. */
async function readState(
  send: Send,
  operations: readonly Operation[],
  { chain, askHead, doubts }: { chain: string; askHead: boolean; doubts: readonly Doubt[] },
): Promise<ReadState> {
  const touched = touch(operations);
  const lockIds = texts([...touched.locks], (id) => id);
  const budgetIds = texts([...touched.budgets], (id) => id);
  const lockBudgets: Step = { statement: BUDGETS, params: [budgetIds, lockIds] };
  const rows: readonly Step[] = [
    { statement: ACCOUNTS, params: [texts([...touched.accounts], (id) => id), lockIds] },
    { statement: LOCKS, params: [lockIds] },
    lockBudgets,
  ];
  const transferIds = texts([...touched.transfers], (id) => id);
  const [, accountRows, lockRows, budgetRows, transferRows] = await send([
    BEGIN,
    ...rows,
    { statement: TRANSFERS, params: [transferIds] },
  ]);
  let accounts = byId(accountRows!, toAccount);
  let locks = byId(lockRows!, toOpenLock);
  let budgets = byId(budgetRows!, toBudget);
  // A lock that was made while its account was waited for: its account is not locked yet, and whatever hangs on the
  // lock could change meanwhile.
  const unlocked = () => locks.values().some((row) => !accounts.has(escrowOf(row.account)));
  for (let round = 0; round < READ_ROUNDS && unlocked(); round += 1) {
    const [accountsAgain, locksAgain, budgetsAgain] = await send(rows);
    accounts = byId(accountsAgain!, toAccount);
    locks = byId(locksAgain!, toOpenLock);
    budgets = byId(budgetsAgain!, toBudget);
  }
  if ([...touched.budgets].some((id) => !budgets.has(id))) {
    const [, again] = await send([{ statement: NEW_BUDGETS, params: [budgetIds] }, lockBudgets]);
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
  const transfers = new Set(transferRows!.map((row) => row.id));
  return {
    head,
    committed,
    account: (id) => accounts.get(id),
    lock: (id) => locks.get(id),
    budget: (id) => budgets.get(id),
    hasTransfer: (id) => transfers.has(id),
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
 * The keys that the operations name; the accounts and budgets of existing locks are found by the statements themselves.
 */
function touch(operations: readonly Operation[]) {
  const accounts = new Set<string>();
  const locks = new Set<string>();
  const budgets = new Set<string>();
  const transfers = new Set<string>();
  for (const { kind, request } of operations) {
    if (kind === 'transfer') {
      transfers.add(request.id);
      accounts.add(request.from);
      accounts.add(request.to);
      continue;
    }
    locks.add(request.id);
    if (kind === 'lock') {
      accounts.add(escrowOf(request.account));
      if (request.parent !== undefined) locks.add(request.parent);
      else if (request.budget) budgets.add(request.budget.id);
    } else if (kind === 'settle') {
      accounts.add(earningsOf(request.provider));
      if (request.feeBps > 0) accounts.add(FEES);
    }
  }
  return { accounts, locks, budgets, transfers };
}
