import { createHash } from 'node:crypto';
import type { JournalRow } from './ledger-changes.ts';

export interface ChainHead {
  readonly n: number;
  readonly hash: string;
}

/**
 * The hash of a batch: sha256 over the previous batch's hash and the canonical text of this one, which is one JSON
 * array [chain, n, at] and one JSON array of texts per row, each on a line. Whoever changes, adds or drops a row
 * breaks the chain from there on.
 */
export function hashBatch(prev: string, chain: string, n: number, at: number, rows: readonly JournalRow[]): string {
  let text = `${prev}\n${JSON.stringify([chain, n, at])}`;
  for (const row of rows) {
    text += `\n${JSON.stringify([row.kind, row.id, row.account, row.counterparty, `${row.amount}`, `${row.charged}`, `${row.fee}`, `${row.drawn}`, row.price, row.at])}`;
  }
  return createHash('sha256').update(text).digest('hex');
}
