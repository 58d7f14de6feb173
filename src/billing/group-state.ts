import { loadStatement, type Query } from '#store';
import type { Gap } from './free-ids.ts';
import type { AccountRow, BudgetRow, LedgerState, LockRow } from './ledger-changes.ts';
import { ABSENT, type LedgerMemory } from './ledger-memory.ts';
import { readAccount, readBudget, toOpenLock } from './ledger-rows.ts';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const FIND_LOCK = load('find-lock-to-resolve');
const FIND_LOCK_GAP = load('find-lock-gap');
const FIND_TRANSFER = load('find-transfer');

/**
 * The rows on which one group is decided: rows in memory, and rows that were read for the group. If the decision asks
 * for any other row, the row is noted as missing and the decision is discarded. It is made again after `read` has read
 * the missing rows.
 */
export class GroupState implements LedgerState {
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
      const [row] = await query(FIND_LOCK, [id]);
      return row ? toOpenLock(row) : ABSENT;
    };
    // All queries are made in one turn, so they are sent to the database thread in one message.
    await Promise.all([
      ...[...accounts].map(async (id) => memory.accounts.set(id, await readAccount(query, id))),
      ...[...budgets].map(async (id) => memory.budgets.set(id, await readBudget(query, id))),
      ...[...locks].map(async (id) => this.#locks.set(id, await readLock(id))),
      ...[...transfers].map(async (id) => this.#transfers.set(id, (await query(FIND_TRANSFER, [id])).length > 0)),
    ]);
    const [unused] = [...locks].filter((id) => this.#locks.get(id) === ABSENT).sort();
    if (unused === undefined) return;
    // The ids of the next locks are usually in the same gap.
    const [{ after, before }] = (await query(FIND_LOCK_GAP, [unused])) as unknown as [Gap];
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
