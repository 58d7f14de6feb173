import type { Row } from '#store';
import type { LockState } from './ledger.ts';
import type { AccountRow, BudgetRow, LockRow } from './ledger-decide.ts';

/** Rows of the tables `accounts`, `budgets` and `locks`, as both engines give them. */
export function toAccount(row: Row): AccountRow {
  return { id: row.id as string, available: row.available as bigint, locked: row.locked as bigint };
}

export function toBudget(row: Row): BudgetRow {
  return { id: row.id as string, spent: row.spent as bigint, locked: row.locked as bigint };
}

export function toLock(row: Row): LockRow {
  return {
    id: row.id as string,
    account: row.account as string,
    amount: row.amount as bigint,
    prices: JSON.parse(row.prices as string) as readonly string[],
    budget: row.budget as string | null,
    state: row.state as LockState,
    price: row.price as string | null,
    provider: row.provider as string | null,
    charged: row.charged as bigint,
    fee: row.fee as bigint,
    drawn: row.drawn as bigint,
    shortfall: row.shortfall as bigint,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    resolvedAt: row.resolved_at === null ? null : Number(row.resolved_at),
    lockDetail: row.lock_detail as string,
    usage: row.usage as string | null,
    detail: row.detail as string | null,
  };
}
