import { DatabaseError, loadStatements, type Step, type Value } from '#store';
import { budgetText, isPlain, type LockRow } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';
import type { GroupHeader } from './journal.ts';
import type { AssumedRows } from './ledger-postgres-known.ts';

const SQL = loadStatements(import.meta.url, '../sql/ledger-postgres.sql', [
  'pgAssumeAccounts',
  'pgAssumeAccountStripes',
  'pgAssumeBudgets',
  'pgAssumeBudgetStripes',
  'pgOpenAccounts',
  'pgCommit',
  'pgChangeLocks',
  'pgChangeAccountStripes',
  'pgChangeBudgets',
  'pgChangeBudgetStripes',
  'pgResolveNewLocks',
  'pgInsertTransfers',
]);

interface GroupRecord extends GroupHeader {
  readonly prev: string;
  readonly hash: string;
  readonly movements: string;
}

/** The stripe of a gateway, and the accounts that are credited there. The decision has their credits as balances. */
interface Stripe {
  readonly number: number;
  readonly credited: ReadonlySet<string>;
}

/** Creates accounts with zero balances. */
export const openStep = (ids: readonly string[]): Step => ({
  statement: SQL.pgOpenAccounts,
  params: [texts(ids, (id) => id)],
});

/**
 * The statements that write a decision. Rare changes have separate statements, which are left out if there is nothing
 * to write. All accounts of the decision must have rows already, see openStep, except those that are credited in the
 * stripe. Throws DatabaseError `check_violation` for a text of a lock that contains one of the control characters that
 * separate the texts.
 */
export function writeSteps(decision: Decision, record: GroupRecord, stripe: Stripe): readonly Step[] {
  const { newLocks, resolvedLocks, transfers } = decision;
  const own = decision.accounts.filter((row) => row.stripe === undefined);
  const leased = decision.accounts.filter((row) => row.stripe !== undefined);
  const accounts = own.filter(({ id }) => !stripe.credited.has(id));
  const credited = own.filter(({ id }) => stripe.credited.has(id));
  const budgets = decision.budgets.filter((row) => row.stripe === undefined);
  const leasedBudgets = decision.budgets.filter((row) => row.stripe !== undefined);
  const ended = newLocks.filter((row) => row.resolvedAt !== null);
  const isEnded = new Set(ended);
  const resolved = ended.length === 0 ? resolvedLocks : resolvedLocks.filter((row) => !isEnded.has(row));
  const nested = newLocks.every(isPlain) ? [] : newLocks;
  const { chain, n, at, count, prev, hash, movements } = record;
  const commit: Step = {
    statement: SQL.pgCommit,
    params: [
      texts(accounts, (row) => row.id),
      ...accountParams(accounts),
      texts(newLocks, (row) => row.id),
      texts(newLocks, (row) => row.account),
      numbers(newLocks, (row) => row.amount),
      jsons(newLocks, (row) => JSON.stringify(row.prices)),
      texts(newLocks, (row) => budgetText(row.budgets)),
      numbers(newLocks, (row) => row.expiresAt),
      jsons(newLocks, (row) => row.lockDetail),
      texts(nested, (row) => row.parent),
      numbers(nested, (row) => row.depth),
      numbers(nested, (row) => row.lendable),
      numbers(nested, (row) => row.lent),
      numbers(nested, (row) => (row.isKept ? 1 : 0)),
      ...resolutions(resolved),
      at,
      chain,
      n,
      resolved.length,
      count,
      prev,
      hash,
      movements,
      texts(credited, (row) => row.id),
      numbers(credited, (row) => row.available),
      stripe.number,
      numbers(newLocks.some((row) => row.heldIn !== undefined) ? newLocks : [], (row) => row.heldIn ?? null),
    ],
  };
  const steps = [commit];
  if (leased.length > 0) {
    const params = [texts(leased, (row) => row.id), numbers(leased, (row) => row.stripe!), ...accountParams(leased)];
    steps.unshift({ statement: SQL.pgChangeAccountStripes, params });
  }
  if (leasedBudgets.length > 0) {
    const [ids, ...amounts] = budgetParams(leasedBudgets);
    const params = [ids!, numbers(leasedBudgets, (row) => row.stripe!), ...amounts];
    steps.unshift({ statement: SQL.pgChangeBudgetStripes, params });
  }
  if (ended.length > 0) steps.push({ statement: SQL.pgResolveNewLocks, params: [...resolutions(ended), at] });
  if (budgets.length > 0) steps.push({ statement: SQL.pgChangeBudgets, params: budgetParams(budgets) });
  if (transfers.length > 0)
    steps.push({ statement: SQL.pgInsertTransfers, params: [...transferParams(transfers), at] });
  return [...steps, ...changeSteps(decision)];
}

/**
 * The statements that a decision on known rows needs before it is written. They lock all rows that it was decided on,
 * also those that it leaves as they are, and fail with ASSUMED_WRONGLY if one of them has changed.
 */
export function assumeSteps({ accounts, budgets }: AssumedRows): readonly Step[] {
  const steps: Step[] = [];
  const add = <T extends { readonly id: string; readonly stripe?: number | undefined }>(
    [statement, ofStripes]: readonly [Step['statement'], Step['statement']],
    rows: readonly T[],
    amounts: (rows: readonly T[]) => readonly Value[],
  ) => {
    const whole = rows.filter((row) => row.stripe === undefined);
    const stripes = rows.filter((row) => row.stripe !== undefined);
    const ids = (group: readonly T[]) => texts(group, (row) => row.id);
    if (whole.length > 0) steps.push({ statement, params: [ids(whole), ...amounts(whole)] });
    if (stripes.length === 0) return null;
    const params = [ids(stripes), numbers(stripes, (row) => row.stripe!), ...amounts(stripes)];
    return { statement: ofStripes, params };
  };
  const accountStripes = add([SQL.pgAssumeAccounts, SQL.pgAssumeAccountStripes], accounts, (rows) => [
    numbers(rows, (row) => row.available),
    numbers(rows, (row) => row.locked),
  ]);
  const budgetStripes = add([SQL.pgAssumeBudgets, SQL.pgAssumeBudgetStripes], budgets, (rows) => [
    numbers(rows, (row) => row.spent),
    numbers(rows, (row) => row.locked),
    numbers(rows, (row) => row.leased ?? 0n),
  ]);
  return [...steps, accountStripes, budgetStripes].filter((step) => step !== null);
}

/** The code of the error of assumeSteps: a division by zero. */
export const ASSUMED_WRONGLY = '22012';

/** Writes the changes of locks of earlier groups that are not resolutions; empty if there are no such changes. */
export function changeSteps({ changedLocks: changed }: Decision): readonly Step[] {
  if (changed.length === 0) return [];
  const params = [
    texts(changed, ({ row }) => row.id),
    numbers(changed, ({ row, lentBefore }) => row.lent - lentBefore),
    numbers(changed, ({ row }) => (row.isKept ? 1 : 0)),
    numbers(changed, ({ row }) => row.expiresAt),
    numbers(changed, ({ row }) => row.resolvedAt),
  ];
  return [{ statement: SQL.pgChangeLocks, params }];
}

const accountParams = (accounts: Decision['accounts']): readonly Value[] => [
  numbers(accounts, (row) => row.available - row.availableBefore),
  numbers(accounts, (row) => row.locked - row.lockedBefore),
];

const budgetParams = (budgets: Decision['budgets']): readonly Value[] => [
  texts(budgets, (row) => row.id),
  numbers(budgets, (row) => row.spent - row.spentBefore),
  numbers(budgets, (row) => row.locked - row.lockedBefore),
  numbers(budgets, (row) => (row.leased ?? 0n) - (row.leasedBefore ?? 0n)),
];

const transferParams = (transfers: Decision['transfers']): readonly Value[] => [
  texts(transfers, (row) => row.id),
  texts(transfers, (row) => row.from),
  texts(transfers, (row) => row.to),
  numbers(transfers, (row) => row.amount),
  texts(transfers, (row) => row.memo),
];

const resolutions = (rows: readonly LockRow[]): readonly Value[] => [
  texts(rows, (row) => row.id),
  texts(rows, (row) => row.state),
  texts(rows, (row) => row.price),
  texts(rows, (row) => row.provider),
  numbers(rows, (row) => row.charged),
  numbers(rows, (row) => row.fee),
  numbers(rows, (row) => row.feeBps),
  numbers(rows, (row) => row.drawn),
  numbers(rows, (row) => row.shortfall),
  jsons(rows, (row) => row.usage),
  jsons(rows, (row) => row.detail),
];

const SPECIAL = /["\\]/;

/** A PostgreSQL array literal of texts. */
export function texts<T>(rows: readonly T[], text: (row: T) => string | null): string {
  let literal = '';
  for (const row of rows) {
    const value = text(row);
    if (value === null) literal += ',NULL';
    else literal += SPECIAL.test(value) ? `,"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : `,"${value}"`;
  }
  return `{${literal.slice(1)}}`;
}

const SEPARATOR = '\u001F';
const NULL = '\u001E';

/**
 * Joins JSON texts, each after a separator. An array literal would need escaped quotes, which would cost more than all
 * the rest.
 */
function jsons<T>(rows: readonly T[], text: (row: T) => string | null): string {
  let joined = '';
  for (const row of rows) {
    const value = text(row);
    if (value !== null && (value === NULL || value.includes(SEPARATOR)))
      throw new DatabaseError(`${JSON.stringify(value)} is no JSON text`, { code: 'check_violation' });
    joined += SEPARATOR + (value ?? NULL);
  }
  return joined;
}

/** A PostgreSQL array literal of numbers. */
export function numbers<T>(rows: readonly T[], value: (row: T) => bigint | number | null): string {
  let literal = '';
  for (const row of rows) literal += `,${value(row) ?? 'NULL'}`;
  return `{${literal.slice(1)}}`;
}
