import type { OpenDatabase } from '#store';
import { createLedger, expireOrphans, type Ledger, type LedgerBatch } from '#billing';
import type { JournalWatch } from './journal/journal.ts';

interface Books {
  readonly database: OpenDatabase;
  readonly journal: JournalWatch;
  readonly opened: AsyncDisposableStack;
  readonly now: () => number;
}

/** The ledger of a database; its journal is guarded. `onBatch` is told of every group that it commits. */
export async function openLedger(
  { database, journal, opened, now }: Books,
  onBatch: (batch: LedgerBatch) => void,
): Promise<Ledger> {
  const ledger = await createLedger({ database, now, onBatch: journal.noting(onBatch) });
  opened.defer(() => ledger.close());
  // No other process can have the embedded database open: locks that are held now are of calls that died with their
  // process.
  if (database.engine === 'sqlite') await expireOrphans(ledger);
  return ledger;
}
