import type { AccountRow, BudgetRow, LockRow, Written } from './ledger-changes.ts';
import { FreeIds } from './free-ids.ts';
import { Recently } from './recently.ts';

/** Marks a row that does not exist in the tables. */
export const ABSENT = null;

const ACCOUNTS = 20_000;
const BUDGETS = 20_000;
const LOCKS = 50_000;

/**
 * The ledger's current rows, as of the end of the log: recently used accounts and budgets, and held locks. All other
 * rows are in the tables, which follow the log.
 */
export class LedgerMemory {
  readonly accounts = new Recently<AccountRow | typeof ABSENT>(ACCOUNTS);
  readonly budgets = new Recently<BudgetRow | typeof ABSENT>(BUDGETS);
  readonly locks = new Recently<LockRow>(LOCKS);
  readonly freeIds = new FreeIds();

  /** Applies a group's changes. Call it after the group is on disk. */
  take({ accounts, budgets, newLocks, resolvedLocks, changedLocks }: Written): void {
    for (const { id, available, locked } of accounts) this.accounts.set(id, { id, available, locked });
    for (const { id, spent, locked } of budgets) this.budgets.set(id, { id, spent, locked });
    for (const row of newLocks) {
      this.freeIds.take(row.id);
      this.locks.set(row.id, row);
    }
    for (const { row } of changedLocks) this.locks.set(row.id, row);
    for (const row of resolvedLocks) {
      // Locks under this one need it when they end.
      if (row.lendable > 0n) this.locks.set(row.id, row);
      else this.locks.delete(row.id);
    }
  }
}
