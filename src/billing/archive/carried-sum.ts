import { loadStatements, type Database, type Value } from '#store';
import { archivedUntil } from './registered.ts';
import { escrowOf, type BudgetUse } from '../ledger/ledger.ts';

/**
 * A budget, and the calls that count in it but may be missing in its counter, because they were made with other
 * budgets.
 */
export interface CarryingBudget {
  /** The id of the budget in the ledger. */
  readonly id: string;
  /** Without the `escrow:` prefix. */
  readonly account: string;
  /** Which calls count: all calls of the account, those of one key, or those of the keys of one member. */
  readonly scope: 'account' | 'key' | 'member';
  /** The part of `id` before the period. */
  readonly name: string;
  /** The account of the member; null for a key or an account. */
  readonly member: string | null;
  /** Only calls with this tag count; absent for all calls. Such a budget has a `start`. */
  readonly tag?: { readonly name: string; readonly value: string };
  /** Epoch milliseconds. Calls that began then or later count, with the calls under them. null counts all calls. */
  readonly start: number | null;
}

/** The money that was spent and locked, at one moment, by calls that are not in the counter of a budget. */
export interface CarriedSum extends BudgetUse {
  /** Epoch milliseconds. All of these calls that began before this moment have ended. */
  readonly edge: number;
  /** The part of `spent` that was charged for calls that began before the edge. It never changes. */
  readonly settled: bigint;
  /** True if one of these calls still runs. */
  readonly running: boolean;
}

const SQL = loadStatements(import.meta.url, '../sql/carried-sum.sql', [
  'carriedByCalls',
  'carriedOfTag',
  'hasManyCalls',
  'carriedOfKey',
  'carriedOfAccount',
]);

const CARRIED_OF_TAG = {
  sqlite: SQL.carriedOfTag,
  postgres: { ...SQL.carriedOfTag, text: SQL.carriedOfTag.text.replaceAll('instr(', 'strpos(') },
};

/**
 * So many calls are added up in a few milliseconds. More calls are read on a separate connection, so that they do not
 * delay the writers.
 */
const FEW = 5_000;

/**
 * Adds up the calls that began at or after the edge of an earlier sum (`before`). Without an earlier sum it reads the
 * whole period. `settledBy` is a time in epoch milliseconds: locks that were made before it are in the tables by now.
 * Rejects with the database's error.
 */
export async function readCarriedSum(
  database: Pick<Database, 'query' | 'snapshot' | 'engine'>,
  budget: CarryingBudget,
  before: Pick<CarriedSum, 'edge' | 'settled'> | null,
  settledBy: number,
): Promise<CarriedSum> {
  const { id, account, scope, name, member, tag, start } = budget;
  if (start === null && scope !== 'member') {
    const [row] =
      scope === 'key'
        ? await database.query(SQL.carriedOfKey, [name, id])
        : await database.query(SQL.carriedOfAccount, [escrowOf(account), id]);
    const [spent, locked] = [row!['spent'] as bigint, row!['locked'] as bigint];
    return { edge: 0, settled: 0n, spent, locked, running: locked > 0n };
  }
  // Calls between an old edge and the end of an archive are only known as a sum of all archived ones.
  const archived = start === null ? await archivedUntil(database.query) : 0;
  const known = before !== null && before.edge >= archived ? before : null;
  const from = Math.max(start ?? 0, known?.edge ?? 0);
  const params: Value[] = [
    account,
    from,
    ` ${id} `,
    ...(tag === undefined
      ? [scope === 'account' ? '' : ` ${name}:`, member ?? '']
      : [JSON.stringify({ [tag.name]: tag.value }).slice(1, -1)]),
    Math.max(from, settledBy),
    start ?? 0,
  ];
  const statement = tag === undefined ? SQL.carriedByCalls : CARRIED_OF_TAG[database.engine];
  const hasMany = (await database.query(SQL.hasManyCalls, [account, from, FEW])).length > 0;
  const [row] = hasMany
    ? await database.snapshot(`limit ${id}`, (query) => query(statement, params))
    : await database.query(statement, params);
  return {
    edge: Number(row!['edge']),
    settled: (known?.settled ?? 0n) + (row!['settled'] as bigint),
    spent: (known?.settled ?? 0n) + (row!['spent'] as bigint),
    locked: row!['locked'] as bigint,
    running: (row!['running'] as bigint) > 0n,
  };
}
