import { type LedgerLog, type SqliteDatabase, loadStatements, type Query, DatabaseError } from '#store';
import { decide } from './ledger-decide.ts';
import type { Engine } from './group-commit.ts';
import { payloadOf } from './ledger-log-rows.ts';
import { LedgerMemory, type Gap, ABSENT } from './ledger-memory.ts';
import type { Operation, OperationResult } from './ledger-operations.ts';
import { readAccount, readBudget, toOpenLock } from './ledger-rows.ts';
import type { AccountRow, BudgetRow, LedgerState, LockRow, Written } from './ledger-changes.ts';
import { mayBeNegative } from './ledger.ts';

/** There is only one writer at a time, also over restarts, so one chain is enough. */
export const EMBEDDED_CHAIN = 'main';

/** State that all ledgers of one open database share. */
interface Shared {
  readonly memory: LedgerMemory;
  /** Resolves when the group that is being written has ended. */
  turn: Promise<unknown>;
}

const SHARED = new WeakMap<LedgerLog, Shared>();

/**
 * The embedded engine. A group is decided on rows in memory and written as one record of the log. A group is decided
 * only after the previous group is on disk, and memory changes only after the group itself is on disk. So a failed
 * group leaves nothing to undo. The tables follow later.
 */
export function createSqliteEngine(database: SqliteDatabase, now: () => number): Engine {
  const { log, query } = database;
  let shared = SHARED.get(log);
  if (!shared) SHARED.set(log, (shared = { memory: new LedgerMemory(), turn: Promise.resolve() }));
  const own = shared;
  const { memory } = own;

  const commit = async (operations: readonly Operation[]): Promise<readonly OperationResult[]> => {
    const state = new GroupState(memory);
    const at = now();
    let decision = decide(state, operations, at);
    while (state.isMissingRows) {
      await state.read(query);
      decision = decide(state, operations, at);
    }
    checkWritten(decision);
    const payload = payloadOf(decision);
    if (payload !== '') await log.append(at, payload);
    memory.take(decision);
    return decision.results;
  };

  return {
    chain: EMBEDDED_CHAIN,
    begin: () => (operations) => {
      const committed = own.turn.then(() => commit(operations));
      own.turn = committed.catch(() => {});
      return committed;
    },
    isConflict: () => false,
    account: async (id) => {
      const row = memory.accounts.get(id);
      return row === undefined ? readAccount(query, id) : row;
    },
    budget: async (id) => {
      const row = memory.budgets.get(id);
      return row === undefined ? readBudget(query, id) : row;
    },
    close: async () => {},
  };
}

const SQL = loadStatements(import.meta.url, './sql/ledger.sql', ['findLockToResolve', 'findLockGap', 'findTransfer']);

/**
 * The rows on which one group is decided: rows in memory, and rows that were read for the group. If the decision asks
 * for any other row, the row is noted as missing and the decision is discarded. It is made again after `read` has read
 * the missing rows.
 */
class GroupState implements LedgerState {
  readonly #memory: LedgerMemory;
  readonly #locks = new Map<string, LockRow | typeof ABSENT>();
  readonly #transfers = new Map<string, boolean>();
  #missing: Missing = nothing();

  constructor(memory: LedgerMemory) {
    this.#memory = memory;
  }

  account(id: string): AccountRow | undefined {
    const row = this.#memory.accounts.get(id);
    if (row === undefined) this.#missing.accounts.add(id);
    return row ?? undefined;
  }

  budget(id: string): BudgetRow | undefined {
    const row = this.#memory.budgets.get(id);
    if (row === undefined) this.#missing.budgets.add(id);
    return row ?? undefined;
  }

  /** Gives a copy, because a decision's changes take effect only after they are on disk. */
  lock(id: string): LockRow | undefined {
    const row = this.#memory.locks.get(id) ?? this.#locks.get(id);
    if (row) return { ...row };
    if (row === undefined && !this.#memory.freeIds.isFree(id)) this.#missing.locks.add(id);
    return undefined;
  }

  hasTransfer(id: string): boolean {
    const found = this.#transfers.get(id);
    if (found === undefined) this.#missing.transfers.add(id);
    return found ?? false;
  }

  /** True if the decision asked for rows that were not read yet. */
  get isMissingRows(): boolean {
    const { accounts, budgets, locks, transfers } = this.#missing;
    return accounts.size + budgets.size + locks.size + transfers.size > 0;
  }

  /** Reads the missing rows. */
  async read(query: Query): Promise<void> {
    const { accounts, budgets, locks, transfers } = this.#missing;
    this.#missing = nothing();
    const memory = this.#memory;
    const readLock = async (id: string) => {
      const [row] = await query(SQL.findLockToResolve, [id]);
      return row ? toOpenLock(row) : ABSENT;
    };
    // All queries are made in one turn, so they are sent to the database thread in one message.
    await Promise.all([
      ...[...accounts].map(async (id) => memory.accounts.set(id, await readAccount(query, id))),
      ...[...budgets].map(async (id) => memory.budgets.set(id, await readBudget(query, id))),
      ...[...locks].map(async (id) => this.#locks.set(id, await readLock(id))),
      ...[...transfers].map(async (id) => this.#transfers.set(id, (await query(SQL.findTransfer, [id])).length > 0)),
    ]);
    const [unused] = [...locks].filter((id) => this.#locks.get(id) === ABSENT).sort();
    if (unused === undefined) return;
    // The ids of the next locks are usually in the same gap.
    const [{ after, before }] = (await query(SQL.findLockGap, [unused])) as unknown as [Gap];
    memory.freeIds.learn({ after, before });
  }
}

interface Missing {
  readonly accounts: Set<string>;
  readonly budgets: Set<string>;
  readonly locks: Set<string>;
  readonly transfers: Set<string>;
}

const nothing = (): Missing => ({ accounts: new Set(), budgets: new Set(), locks: new Set(), transfers: new Set() });

/** The largest number that a column can hold. */
const MOST = 2n ** 63n - 1n;

/**
 * Refuses a decision that would violate the constraints of the tables. The log is written before the tables, so the
 * constraints must hold before the decision is on disk. Throws DatabaseError `check_violation`.
 */
function checkWritten({ accounts, budgets, newLocks, resolvedLocks, changedLocks, transfers }: Written): void {
  for (const { id } of transfers) checkId(id);
  for (const { id, available, locked } of accounts) {
    checkId(id);
    const isCovered = available >= 0n || mayBeNegative(id);
    if (!isCovered || locked < 0n || available > MOST || -available > MOST || locked > MOST)
      refuse('accounts_available', `account ${id} would have ${available} available, ${locked} locked`);
  }
  for (const { id, spent, locked } of budgets) {
    checkId(id);
    if (spent < 0n || locked < 0n || spent > MOST || locked > MOST)
      refuse('budgets_spent', `budget ${id} would have ${spent} spent, ${locked} locked`);
  }
  for (const row of newLocks) {
    checkId(row.id);
    checkLent(row);
    if (!Number.isSafeInteger(row.expiresAt))
      refuse('locks_expires_at', `lock ${row.id} would expire at ${row.expiresAt}, which is no time in milliseconds`);
  }
  for (const { row } of changedLocks) checkLent(row);
  for (const row of resolvedLocks) {
    checkLent(row);
    const { id, amount, charged, drawn, fee, lendable, shortfall } = row;
    const own = charged - drawn;
    if (
      fee < 0n ||
      drawn < 0n ||
      shortfall < 0n ||
      charged < fee ||
      own < 0n ||
      own > amount - lendable ||
      shortfall > MOST
    )
      refuse('locks_amounts', `lock ${id} would be charged ${charged}, ${drawn} of it drawn`);
  }
}

/** The tables would turn two ids with different lone surrogates into the same id. */
function checkId(id: string): void {
  if (!id.isWellFormed()) refuse('text', `the id ${JSON.stringify(id)} contains a lone surrogate`);
}

function checkLent({ id, amount, lendable, lent }: Written['newLocks'][number]): void {
  if (lent < 0n || lent > lendable || lendable > amount)
    refuse('locks_lent', `lock ${id} of ${amount} would have lent ${lent} of ${lendable}`);
}

function refuse(constraint: string, what: string): never {
  throw new DatabaseError(`${constraint}: ${what}`, { code: 'check_violation' });
}
