import { createHash, hash } from 'node:crypto';
import type { JournalRow } from './ledger-changes.ts';

export interface ChainHead {
  readonly n: number;
  readonly hash: string;
}

/** A batch of the journal, without what it says. `count` is its movements. */
export interface GroupHeader {
  readonly chain: string;
  readonly n: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly count: number;
}

/**
 * The movements of a group as PostgreSQL keeps them: one JSON array with an array of texts for each, in the order of
 * JournalRow without its time. The amounts of a settlement are only there in one.
 */
export const movementsText = (rows: readonly JournalRow[]): string => JSON.stringify(rows.map(movement));

function movement({ kind, id, account, counterparty, amount, charged, fee, drawn, price }: JournalRow) {
  if (kind === 'settle')
    return [kind, id, account, counterparty, `${amount}`, `${charged}`, `${fee}`, `${drawn}`, price];
  return [kind, id, account, counterparty, `${amount}`];
}

/**
 * The hash of a group: sha256 over the hash of the group before it, what heads this one, and its movements. Whoever
 * changes, adds or drops one breaks the chain from there on.
 */
export const hashGroup = (prev: string, { chain, n, at, count }: GroupHeader, movements: string): string =>
  hash('sha256', `${prev}\n${JSON.stringify([chain, n, at, count])}\n${movements}`);

const AMOUNT = /^\d{1,18}$/;

/** True for movements that can be told, whoever wrote them. */
export function areMovements(text: string): boolean {
  try {
    return (JSON.parse(text) as readonly unknown[]).every(isMovement);
  } catch {
    return false;
  }
}

function isMovement(fields: unknown): boolean {
  if (!Array.isArray(fields) || fields.some((field) => typeof field === 'string' && field.includes('\0'))) return false;
  const [kind, id, account, counterparty, amount, charged = '0', fee = '0', drawn = '0', price = null] =
    fields as unknown[];
  return (
    [kind, id, account].every((field) => typeof field === 'string') &&
    [counterparty, price].every((field) => field === null || typeof field === 'string') &&
    [amount, charged, fee, drawn].every((field) => typeof field === 'string' && AMOUNT.test(field))
  );
}

/**
 * The hash of a batch whose movements are rows of a table, as they were before: sha256 over the previous batch's hash
 * and the canonical text of this one, which is one JSON array [chain, n, at] and one JSON array of texts per row, each
 * on a line.
 */
export function hashBatch(prev: string, chain: string, n: number, at: number, rows: readonly JournalRow[]): string {
  let text = `${prev}\n${JSON.stringify([chain, n, at])}`;
  for (const row of rows) {
    text += `\n${JSON.stringify([row.kind, row.id, row.account, row.counterparty, `${row.amount}`, `${row.charged}`, `${row.fee}`, `${row.drawn}`, row.price, row.at])}`;
  }
  return createHash('sha256').update(text).digest('hex');
}
