import { loadStatements, type Query, type Row } from '#store';
import { partsOf } from './call-ids.ts';
import type { AccountName, LockRecord, LockState } from './ledger.ts';
import { openLock, type AccountRow, type BudgetRow, type LockRow } from './ledger-changes.ts';

/** Converts rows of the tables `accounts`, `budgets` and `locks`, which both engines give in the same form. */
export function toAccount(row: Row): AccountRow {
  return { id: row.id as string, available: row.available as bigint, locked: row.locked as bigint };
}

/** `leased` that is 0 is read as NULL. */
export function toBudget(row: Row): BudgetRow {
  const leased = (row['leased'] ?? undefined) as bigint | undefined;
  return { id: row.id as string, spent: row.spent as bigint, locked: row.locked as bigint, leased };
}

/** Converts rows of the tables `account_stripes` and `budget_stripes` of PostgreSQL. */
export function toAccountStripe(row: Row): AccountRow {
  const { account, stripe, available, locked } = row as Record<string, string | bigint>;
  return {
    id: account as string,
    stripe: Number(stripe),
    available: available as bigint,
    locked: locked as bigint,
  };
}

export function toBudgetStripe(row: Row): BudgetRow {
  const { budget, stripe, spent, locked, leased, most } = row as Record<string, string | bigint>;
  return {
    id: budget as string,
    stripe: Number(stripe),
    spent: spent as bigint,
    locked: locked as bigint,
    leased: leased as bigint,
    most: most as bigint,
  };
}

/**
 * Converts a row with only the columns that a decision needs. Lending columns that are 0 are read as NULL, because that
 * is cheaper to transfer.
 */
export function toOpenLock(row: Row): LockRow {
  const stripe = row['stripe'] ?? null;
  const lock = {
    id: row.id as string,
    account: row.account as string,
    amount: row.amount as bigint,
    parent: row.parent as string | null,
    depth: Number(row.depth ?? 0),
    lendable: (row.lendable ?? 0n) as bigint,
    lent: (row.lent ?? 0n) as bigint,
    isKept: row.kept === 1n,
    prices: JSON.parse(row.prices as string) as readonly string[],
    budgets: budgetsOf(row.budget as string | null),
    state: row.state as LockState,
    createdAt: Number(row.created_at ?? 0),
    expiresAt: Number(row.expires_at),
    lockDetail: '',
  };
  return openLock(lock, stripe === null ? undefined : Number(stripe));
}

const budgetsOf = (text: string | null): readonly string[] => (text === null ? [] : text.split(' '));

export function toLock(row: Row): LockRecord {
  return {
    ...toOpenLock(row),
    price: row.price as string | null,
    provider: row.provider as string | null,
    charged: row.charged as bigint,
    fee: row.fee as bigint,
    feeBps: row.fee_bps === null ? null : Number(row.fee_bps),
    drawn: row.drawn as bigint,
    shortfall: row.shortfall as bigint,
    resolvedAt: row.resolved_at === null ? null : Number(row.resolved_at),
    lockDetail: row.lock_detail as string,
    usage: row.usage as string | null,
    detail: row.detail as string | null,
  };
}

const SQL = loadStatements(import.meta.url, '../sql/ledger.sql', ['findAccount', 'findBudget']);
const ARCHIVE_SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['findArchivedId']);

/**
 * Stands for a lock that is in an archive, so that its id is not used again: it is resolved, and has no money. null
 * if no archive has it.
 */
export async function findArchivedLock(query: Query, id: string): Promise<LockRow | null> {
  const { prefix, rest } = partsOf(id);
  const [row] = await query(ARCHIVE_SQL.findArchivedId, [id, prefix, rest]);
  return row === undefined ? null : archivedLock(id);
}

const archivedLock = (id: string): LockRow =>
  openLock({
    id,
    account: '',
    amount: 0n,
    parent: null,
    depth: 0,
    lendable: 0n,
    lent: 0n,
    isKept: false,
    prices: [],
    budgets: [],
    state: 'released',
    createdAt: 0,
    expiresAt: 0,
    lockDetail: '',
  });

export async function readAccount(query: Query, id: AccountName): Promise<AccountRow | null> {
  const [row] = await query(SQL.findAccount, [id]);
  return row ? toAccount(row) : null;
}

export async function readBudget(query: Query, id: string): Promise<BudgetRow | null> {
  const [row] = await query(SQL.findBudget, [id]);
  return row ? toBudget(row) : null;
}
