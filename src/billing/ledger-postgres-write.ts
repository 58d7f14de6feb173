import type { Value } from '#store';
import { isPlain, type JournalRow } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';

interface BatchHeader {
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
  const { budgets, transfers } = decision;
  const isNew = new Set(decision.newLocks);
  const resolved = decision.resolvedLocks.filter((row) => !isNew.has(row));
  // Opened and resolved in one batch is rare. Those come first, so that the arrays of resolutions can end with
  // them: SQL fills them up with NULL.
  const ended = decision.newLocks.filter((row) => row.resolvedAt !== null);
  const newLocks = [...ended, ...decision.newLocks.filter((row) => row.resolvedAt === null)];
  const nested = newLocks.every(isPlain) ? [] : newLocks;
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
    numbers(newLocks, (row) => row.createdAt),
    numbers(newLocks, (row) => row.expiresAt),
    texts(newLocks, (row) => row.lockDetail),
    texts(ended, (row) => row.state),
    texts(ended, (row) => row.price),
    texts(ended, (row) => row.provider),
    numbers(ended, (row) => row.charged),
    numbers(ended, (row) => row.fee),
    numbers(ended, (row) => row.feeBps),
    numbers(ended, (row) => row.drawn),
    numbers(ended, (row) => row.shortfall),
    numbers(ended, (row) => row.resolvedAt),
    texts(ended, (row) => row.usage),
    texts(ended, (row) => row.detail),
    texts(nested, (row) => row.parent),
    numbers(nested, (row) => row.depth),
    numbers(nested, (row) => row.lendable),
    numbers(nested, (row) => row.lent),
    numbers(nested, (row) => (row.kept ? 1 : 0)),
    texts(resolved, (row) => row.id),
    texts(resolved, (row) => row.state),
    texts(resolved, (row) => row.price),
    texts(resolved, (row) => row.provider),
    numbers(resolved, (row) => row.charged),
    numbers(resolved, (row) => row.fee),
    numbers(resolved, (row) => row.feeBps),
    numbers(resolved, (row) => row.drawn),
    numbers(resolved, (row) => row.shortfall),
    numbers(resolved, (row) => row.resolvedAt),
    texts(resolved, (row) => row.usage),
    texts(resolved, (row) => row.detail),
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
    resolved.length,
    journal.length,
    prev,
    hash,
  ];
}

/** The parameters of sql/pg-change-locks.sql. */
export function changeParams(changed: Decision['changedLocks']): readonly Value[] {
  return [
    texts(changed, ({ row }) => row.id),
    numbers(changed, ({ row, lentBefore }) => row.lent - lentBefore),
    numbers(changed, ({ row }) => (row.kept ? 1 : 0)),
    numbers(changed, ({ row }) => row.expiresAt),
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
