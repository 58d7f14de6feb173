import { loadStatements, type LogRecord, type Prepare } from '#store';
import {
  entriesOf,
  type AccountEntry,
  type BudgetEntry,
  type ChangeEntry,
  type GiveBackEntry,
  type LockEntry,
  type SettleEntry,
} from './ledger-log-rows.ts';

const SQL = loadStatements(import.meta.url, '../sql/ledger-follower.sql', [
  'putAccount',
  'putBudget',
  'insertLock',
  'insertNestedLock',
  'insertResolvedLock',
  'resolveLock',
  'changeLock',
  'insertTransfer',
]);

interface ResolutionEntry {
  readonly at: number;
  readonly entry: SettleEntry | GiveBackEntry;
}

interface LockEntries {
  beginning?: { readonly at: number; readonly entry: LockEntry };
  change?: ChangeEntry;
  resolution?: ResolutionEntry;
}

/**
 * Applies records of the log to the tables. Each row is written once for all records: a lock that is made and resolved
 * in them is one INSERT, and balances are written as they are after the last record.
 */
export function apply(prepare: Prepare, records: readonly LogRecord[]): void {
  const locks = new Map<string, LockEntries>();
  const accounts = new Map<string, AccountEntry>();
  const budgets = new Map<string, BudgetEntry>();
  const insertTransfer = prepare(SQL.insertTransfer);
  const entriesFor = (id: string): LockEntries => {
    let entries = locks.get(id);
    if (!entries) locks.set(id, (entries = {}));
    return entries;
  };
  for (const { at, payload } of records) {
    for (const entry of entriesOf(payload)) {
      const [kind, id] = entry;
      if (kind === 'lock') locks.set(id, { beginning: { at, entry } });
      else if (kind === 'settle' || kind === 'release' || kind === 'expire') entriesFor(id).resolution = { at, entry };
      else if (kind === 'account') accounts.set(id, entry);
      else if (kind === 'budget') budgets.set(id, entry);
      else if (kind === 'change') entriesFor(id).change = entry;
      else if (kind === 'transfer') insertTransfer.run(id, entry[2], entry[3], entry[4], entry[5], at);
    }
  }
  for (const [id, each] of locks) putLock(prepare, id, each);
  const putAccount = prepare(SQL.putAccount);
  for (const [, id, available, locked] of accounts.values()) putAccount.run(id, available, locked);
  const putBudget = prepare(SQL.putBudget);
  for (const [, id, spent, locked] of budgets.values()) putBudget.run(id, spent, locked);
}

function putLock(prepare: Prepare, id: string, { beginning, change, resolution }: LockEntries): void {
  if (beginning) {
    const [, , account, amount, prices, budget, expiresAt, detail, run, at = beginning.at] = beginning.entry;
    const begin = [id, account, amount, JSON.stringify(prices), budget, at, change?.[4] ?? expiresAt, detail] as const;
    if (run || change) {
      const [parent, depth, lendable, lent, isKept] = run ?? [null, 0, '0', '0', 0];
      prepare(SQL.insertNestedLock).run(...begin, parent, depth, lendable, change?.[2] ?? lent, change?.[3] ?? isKept);
    } else if (resolution) return void prepare(SQL.insertResolvedLock).run(...begin, ...resolved(resolution));
    else prepare(SQL.insertLock).run(...begin);
  } else if (change) prepare(SQL.changeLock).run(id, change[2], change[3], change[4]);
  if (!resolution) return;
  const { changes } = prepare(SQL.resolveLock).run(id, ...resolved(resolution));
  if (Number(changes) !== 1) throw new Error(`The log resolves lock ${id}, which no table holds`);
}

/** state, price, provider, charged, fee, fee_bps, drawn, shortfall, resolved_at, usage, detail */
function resolved({ at, entry }: ResolutionEntry) {
  if (entry[0] !== 'settle') {
    const [kind, , , , detail] = entry;
    return [kind === 'release' ? 'released' : 'expired', null, null, 0, 0, null, 0, 0, at, null, detail] as const;
  }
  const [, , , , price, provider, charged, fee, feeBps, drawn, shortfall, usage, detail] = entry;
  return ['settled', price, provider, charged, fee, feeBps, drawn, shortfall, at, usage, detail] as const;
}
