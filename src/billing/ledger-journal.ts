import { createHash, hash } from 'node:crypto';
import type { JournalRow } from './ledger-changes.ts';

export interface ChainHead {
  readonly n: number;
  readonly hash: string;
}

/** The header of a batch of the journal. `count` is the number of its movements. */
export interface GroupHeader {
  readonly chain: string;
  readonly n: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly count: number;
}

/**
 * The movements of a group as PostgreSQL stores them: a JSON array with one array of texts per movement. The texts are
 * in the order of JournalRow, without `at`. Only a settlement has `charged`, `fee`, `drawn` and `price`.
 */
export const movementsText = (rows: readonly JournalRow[]): string => JSON.stringify(rows.map(movement));

function movement({ kind, id, account, counterparty, amount, charged, fee, drawn, price }: JournalRow) {
  if (kind === 'settle')
    return [kind, id, account, counterparty, `${amount}`, `${charged}`, `${fee}`, `${drawn}`, price];
  return [kind, id, account, counterparty, `${amount}`];
}

/**
 * The hash of a group: sha256 over the hash of the previous group, the header of this group and its movements. A
 * changed, added or dropped movement breaks the chain from there on.
 */
export const hashGroup = (prev: string, { chain, n, at, count }: GroupHeader, movements: string): string =>
  hash('sha256', `${prev}\n${JSON.stringify([chain, n, at, count])}\n${movements}`);

const AMOUNT = /^\d{1,18}$/;

/** True for a text of movements that the audit can read. The text may have been changed by anyone. */
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
 * The hash of an old batch, whose movements are rows of a table: sha256 over the previous batch's hash and the
 * canonical text of this batch. The canonical text is one JSON array [chain, n, at] and one JSON array of texts per
 * row, each on a line.
 */
export function hashBatch(prev: string, chain: string, n: number, at: number, rows: readonly JournalRow[]): string {
  let text = `${prev}\n${JSON.stringify([chain, n, at])}`;
  for (const row of rows) {
    text += `\n${JSON.stringify([row.kind, row.id, row.account, row.counterparty, `${row.amount}`, `${row.charged}`, `${row.fee}`, `${row.drawn}`, row.price, row.at])}`;
  }
  return createHash('sha256').update(text).digest('hex');
}
