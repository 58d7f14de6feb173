import type { Value } from '#store';
import type { Decision, JournalRow } from './ledger-decide.ts';

export interface BatchHeader {
  readonly chain: string;
  readonly n: number;
  readonly at: number;
  readonly prev: string;
  readonly hash: string;
}

/** The parameters of sql/pg-commit.sql: one array literal per column, then the batch. */
export function commitParams(decision: Decision, { chain, n, at, prev, hash }: BatchHeader): readonly Value[] {
  const changed = decision.accounts.filter((row) => !row.isNew);
  const opened = decision.accounts.filter((row) => row.isNew);
  const { budgets, newLocks, resolvedLocks, transfers } = decision;
  const journal: readonly JournalRow[] = decision.journal;
  return [
    texts(changed, (row) => row.id),
    numbers(changed, (row) => row.available - row.availableBefore),
    numbers(changed, (row) => row.locked - row.lockedBefore),
    texts(opened, (row) => row.id),
    numbers(opened, (row) => row.available),
    numbers(opened, (row) => row.locked),
    texts(budgets, (row) => row.id),
    numbers(budgets, (row) => row.spent - row.spentBefore),
    numbers(budgets, (row) => row.locked - row.lockedBefore),
    texts(newLocks, (row) => row.id),
    texts(newLocks, (row) => row.account),
    numbers(newLocks, (row) => row.amount),
    texts(newLocks, (row) => JSON.stringify(row.prices)),
    texts(newLocks, (row) => row.budget),
    texts(newLocks, (row) => row.state),
    texts(newLocks, (row) => row.price),
    texts(newLocks, (row) => row.provider),
    numbers(newLocks, (row) => row.charged),
    numbers(newLocks, (row) => row.fee),
    numbers(newLocks, (row) => row.drawn),
    numbers(newLocks, (row) => row.shortfall),
    numbers(newLocks, (row) => row.createdAt),
    numbers(newLocks, (row) => row.expiresAt),
    numbers(newLocks, (row) => row.resolvedAt),
    texts(newLocks, (row) => row.lockDetail),
    texts(newLocks, (row) => row.usage),
    texts(newLocks, (row) => row.detail),
    texts(resolvedLocks, (row) => row.id),
    texts(resolvedLocks, (row) => row.state),
    texts(resolvedLocks, (row) => row.price),
    texts(resolvedLocks, (row) => row.provider),
    numbers(resolvedLocks, (row) => row.charged),
    numbers(resolvedLocks, (row) => row.fee),
    numbers(resolvedLocks, (row) => row.drawn),
    numbers(resolvedLocks, (row) => row.shortfall),
    numbers(resolvedLocks, (row) => row.resolvedAt),
    texts(resolvedLocks, (row) => row.usage),
    texts(resolvedLocks, (row) => row.detail),
    texts(transfers, (row) => row.id),
    texts(transfers, (row) => row.from),
    texts(transfers, (row) => row.to),
    numbers(transfers, (row) => row.amount),
    texts(transfers, (row) => row.memo),
    texts(journal, (row) => row.kind),
    texts(journal, (row) => row.id),
    texts(journal, (row) => row.account),
    texts(journal, (row) => row.counterparty),
    numbers(journal, (row) => row.amount),
    numbers(journal, (row) => row.charged),
    numbers(journal, (row) => row.fee),
    numbers(journal, (row) => row.drawn),
    texts(journal, (row) => row.price),
    at,
    chain,
    n,
    resolvedLocks.length,
    journal.length,
    prev,
    hash,
  ];
}

const SPECIAL = /["\\]/;

/** An array literal of texts. */
export function texts<T>(rows: readonly T[], text: (row: T) => string | null): string {
  let literal = '';
  for (const row of rows) {
    const value = text(row);
    if (value === null) literal += ',NULL';
    else literal += SPECIAL.test(value) ? `,"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : `,"${value}"`;
  }
  return `{${literal.slice(1)}}`;
}

function numbers<T>(rows: readonly T[], value: (row: T) => bigint | number | null): string {
  let literal = '';
  for (const row of rows) literal += `,${value(row) ?? 'NULL'}`;
  return `{${literal.slice(1)}}`;
}
