import {
  budgetText,
  isPlain,
  type AccountRow,
  type BudgetRow,
  type JournalRow,
  type LockRow,
} from './ledger-changes.ts';
import type { TransferRequest } from './ledger.ts';

/*
 * The entries of a log record. Each is a JSON array that begins with its kind. Amounts are decimal texts. The entries
 * `lock`, `settle`, `release`, `expire`, `return` and `transfer` move money: they are the books. The other entries say
 * what the tables hold afterwards.
 */
export type LockEntry = readonly [
  kind: 'lock',
  id: string,
  /** Without the `escrow:` prefix. */
  account: string,
  amount: string,
  prices: readonly string[],
  budget: string | null,
  expiresAt: number,
  detail: string,
  /** Absent or null for a lock that has no part in a run. */
  run?: readonly [parent: string | null, depth: number, lendable: string, lent: string, kept: 0 | 1] | null,
  /** Epoch milliseconds; absent for a lock that was made at the time of its record. */
  at?: number,
];

export type SettleEntry = readonly [
  kind: 'settle',
  id: string,
  account: string,
  /** The money that the lock held: its amount minus what it had lent. */
  held: string,
  price: string,
  provider: string,
  charged: string,
  fee: string,
  feeBps: number,
  drawn: string,
  shortfall: string,
  usage: string,
  detail: string,
];

export type GiveBackEntry = readonly [
  kind: 'release' | 'expire',
  id: string,
  account: string,
  held: string,
  detail: string | null,
];

/** A lock gives money back to its parent. */
export type ReturnEntry = readonly [kind: 'return', id: string, account: string, amount: string, parent: string];
type TransferEntry = readonly [kind: 'transfer', id: string, from: string, to: string, amount: string, memo: string];
/** A lock of an earlier record lent money, got money back, or is kept from now on. */
export type ChangeEntry = readonly [kind: 'change', id: string, lent: string, kept: 0 | 1, expiresAt: number];
export type AccountEntry = readonly [kind: 'account', id: string, available: string, locked: string];
export type BudgetEntry = readonly [kind: 'budget', id: string, spent: string, locked: string];

export type LedgerEntry =
  | LockEntry
  | SettleEntry
  | GiveBackEntry
  | ReturnEntry
  | TransferEntry
  | ChangeEntry
  | AccountEntry
  | BudgetEntry;

/** The content of a record: the movements in their order, and the rows as they are after them. */
export interface RecordRows {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The rows of each kind below are in the same order as their journal rows. */
  readonly journal: readonly JournalRow[];
  readonly newLocks: readonly LockRow[];
  readonly resolvedLocks: readonly LockRow[];
  readonly transfers: readonly TransferRequest[];
  readonly changedLocks: readonly LockRow[];
  readonly accounts: ReadonlyMap<string, AccountRow>;
  readonly budgets: ReadonlyMap<string, BudgetRow>;
}

export function payloadOf(rows: RecordRows): string {
  let text = '';
  const write = (entry: LedgerEntry) => (text += `${text === '' ? '[' : ',\n'}${JSON.stringify(entry)}`);
  const { newLocks, resolvedLocks, transfers } = rows;
  let [locks, resolved, transferred] = [0, 0, 0];
  for (const row of rows.journal) {
    if (row.kind === 'lock') write(lockEntry(newLocks[locks++]!, rows.at));
    else if (row.kind === 'settle') write(settleEntry(resolvedLocks[resolved++]!, row));
    else if (row.kind === 'transfer') write(transferEntry(transfers[transferred++]!));
    else if (row.kind === 'return') write(['return', row.id, row.account, `${row.amount}`, row.counterparty!]);
    else if (row.kind !== 'lend') {
      const { account, detail } = resolvedLocks[resolved++]!;
      write([row.kind, row.id, account, `${row.amount}`, detail]);
    }
  }
  for (const row of rows.changedLocks) write(['change', row.id, `${row.lent}`, row.isKept ? 1 : 0, row.expiresAt]);
  for (const { id, available, locked } of rows.accounts.values()) write(['account', id, `${available}`, `${locked}`]);
  for (const { id, spent, locked } of rows.budgets.values()) write(['budget', id, `${spent}`, `${locked}`]);
  return `${text || '['}]\n`;
}

export const entriesOf = (payload: string): readonly LedgerEntry[] => JSON.parse(payload) as readonly LedgerEntry[];

function lockEntry(row: LockRow, at: number): LockEntry {
  const { id, account, amount, prices, budgets, createdAt, expiresAt, lockDetail } = row;
  const budget = budgetText(budgets);
  const run = isPlain(row)
    ? null
    : ([row.parent, row.depth, `${row.lendable}`, `${row.lent}`, row.isKept ? 1 : 0] as const);
  if (createdAt !== at)
    return ['lock', id, account, `${amount}`, prices, budget, expiresAt, lockDetail, run, createdAt];
  if (run === null) return ['lock', id, account, `${amount}`, prices, budget, expiresAt, lockDetail];
  return ['lock', id, account, `${amount}`, prices, budget, expiresAt, lockDetail, run];
}

function settleEntry(row: LockRow, { amount: held }: JournalRow): SettleEntry {
  const { id, account, charged, fee, drawn, shortfall } = row;
  return [
    'settle',
    id,
    account,
    `${held}`,
    row.price!,
    row.provider!,
    `${charged}`,
    `${fee}`,
    row.feeBps!,
    `${drawn}`,
    `${shortfall}`,
    row.usage!,
    row.detail!,
  ];
}

const transferEntry = ({ id, from, to, amount, memo }: TransferRequest): TransferEntry => [
  'transfer',
  id,
  from,
  to,
  `${amount}`,
  memo,
];
