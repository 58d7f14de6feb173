import type { OpenDatabase } from '#store';
import { createLedger, expireOrphans, type Ledger, type LedgerBatch } from '#billing';
import type { JournalWatch } from './journal/journal.ts';

interface Books {
  readonly database: OpenDatabase;
  readonly journal: JournalWatch;
  readonly opened: AsyncDisposableStack;
  readonly now: () => number;
}

/**
 * Opens the ledger of a database, with the guard of its journal. `onBatch` gets every batch of operations that the
 * ledger commits.
 */
export async function openLedger(
  { database, journal, opened, now }: Books,
  onBatch: (batch: LedgerBatch) => void,
): Promise<Ledger> {
  const ledger = await createLedger({ database, now, onBatch: journal.noting(onBatch) });
  opened.defer(() => ledger.close());
  // No other process can have the embedded database open, so every lock that is held now belongs to a call that died
  // with its process.
  if (database.engine === 'sqlite') await expireOrphans(ledger);
  return ledger;
}
