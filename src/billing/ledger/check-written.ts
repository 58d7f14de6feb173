import { DatabaseError } from '#store';
import { mayBeNegative } from './ledger.ts';
import type { BatchRows } from './ledger-changes.ts';

/** The largest number that a column can hold. */
const MOST = 2n ** 63n - 1n;

/**
 * Refuses a decision that would violate the constraints of the tables. The log is written before the tables, so the
 * constraints must hold before the decision is on disk. Throws DatabaseError `check_violation`.
 */
export function checkWritten({ accounts, budgets, newLocks, resolvedLocks, changedLocks, transfers }: BatchRows): void {
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

function checkLent({ id, amount, lendable, lent }: BatchRows['newLocks'][number]): void {
  if (lent < 0n || lent > lendable || lendable > amount)
    refuse('locks_lent', `lock ${id} of ${amount} would have lent ${lent} of ${lendable}`);
}

function refuse(constraint: string, what: string): never {
  throw new DatabaseError(`${constraint}: ${what}`, { code: 'check_violation' });
}
