import { loadStatement, type Database, type Value } from '#store';
import { escrowOf, type BudgetUse } from './ledger.ts';

/** A budget, and the calls that count in it although its counter may not have them: they had other budgets. */
export interface CarryingBudget {
  /** The ledger's name. */
  readonly id: string;
  /** Without the `escrow:` prefix. */
  readonly account: string;
  /** All calls of the account, those of a key, or those of the keys of a member. */
  readonly of: 'account' | 'key' | 'member';
  /** The ledger's name before the period. */
  readonly name: string;
  /** The account of the member; null for a key or an account. */
  readonly member: string | null;
  /** Epoch milliseconds: calls that began then or later count, with the calls under them. null: all calls. */
  readonly start: number | null;
}

/** Calls that are not in the counter of a budget have spent and locked this, at one moment. */
export interface CarriedSum extends BudgetUse {
  /** None of these calls that began before this moment (epoch milliseconds) runs any more. */
  readonly edge: number;
  /** Part of `spent`: charges of calls that began before the edge. They never change. */
  readonly settled: bigint;
  /** One of these calls runs. */
  readonly running: boolean;
}

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const BY_CALLS = load('carried-by-calls');
const HAS_MANY = load('has-many-calls');
const OF_KEY = load('carried-of-key');
const OF_ACCOUNT = load('carried-of-account');

/** Calls that are added up in a few milliseconds. More are read on a connection of their own, beside the writers. */
const FEW = 5_000;

/**
 * Reads the books from the edge of an earlier sum on; null reads all of the period. `settledBy`: epoch milliseconds;
 * locks that were made before are in the tables by now. Rejects with the database's error.
 */
export async function readCarriedSum(
  database: Pick<Database, 'query' | 'snapshot'>,
  budget: CarryingBudget,
  before: Pick<CarriedSum, 'edge' | 'settled'> | null,
  settledBy: number,
): Promise<CarriedSum> {
  const { id, account, of, name, member, start } = budget;
  if (start === null && of !== 'member') {
    const [row] =
      of === 'key'
        ? await database.query(OF_KEY, [name, id])
        : await database.query(OF_ACCOUNT, [escrowOf(account), id]);
    const [spent, locked] = [row!['spent'] as bigint, row!['locked'] as bigint];
    return { edge: 0, settled: 0n, spent, locked, running: locked > 0n };
  }
  const from = Math.max(start ?? 0, before?.edge ?? 0);
  const known = before?.settled ?? 0n;
  const params: Value[] = [
    account,
    from,
    ` ${id} `,
    of === 'account' ? '' : ` ${name}:`,
    member ?? '',
    Math.max(from, settledBy),
    start ?? 0,
  ];
  const hasMany = (await database.query(HAS_MANY, [account, from, FEW])).length > 0;
  const [row] = hasMany
    ? await database.snapshot((query) => query(BY_CALLS, params))
    : await database.query(BY_CALLS, params);
  return {
    edge: Number(row!['edge']),
    settled: known + (row!['settled'] as bigint),
    spent: known + (row!['spent'] as bigint),
    locked: row!['locked'] as bigint,
    running: (row!['running'] as bigint) > 0n,
  };
}
