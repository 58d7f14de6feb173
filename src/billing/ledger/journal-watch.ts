import { DatabaseError, type OpenDatabase } from '#store';
import { type LedgerBatch, LOST } from './group-commit.ts';
import { compareJournal, type JournalHead, journalHead } from './journal.ts';
import { EMBEDDED_CHAIN } from './ledger-sqlite.ts';

/** A head that the journal of a database once had, as stored outside of the database. */
export interface RememberedHead extends JournalHead {
  /** RFC 3339. */
  readonly at: string;
}

/**
 * Keeps what is remembered of a journal near its end. It is a lower bound: the journal may have up to one second of
 * later operations.
 */
export interface JournalWatch {
  /** Wraps `listener`: the result passes every batch to it and notes it. Its head is written about a second later. */
  noting(listener: (batch: LedgerBatch) => void): (batch: LedgerBatch) => void;
  /** Writes the head for the last time. Later batches are not noted. */
  close(): Promise<void>;
}

interface JournalWatchOptions {
  readonly database: OpenDatabase;
  /** The head that is remembered at the start; null for none. */
  readonly remembered: RememberedHead | null;
  /** Resolves with the head that is remembered from then on, durably. A write that failed is tried again. */
  readonly write: (head: JournalHead, at: number) => Promise<RememberedHead>;
  readonly now: () => number;
  /**
   * Called at the first write that failed, and again only after a write has succeeded. DatabaseError LOST: the database
   * lacks what is remembered, so nothing is written.
   */
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 1_000;

export async function watchJournal(options: JournalWatchOptions): Promise<JournalWatch> {
  const { database, remembered, now, onError } = options;
  let last: RememberedHead | null = remembered;
  let chain: string | null = remembered === null && database.engine === 'sqlite' ? EMBEDDED_CHAIN : null;
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  let failing = false;
  let closed = false;
  const write = async () => {
    timer = null;
    if (chain === null) return;
    const noted = chain;
    chain = null;
    try {
      const head = await journalHead(database, noted);
      // PostgreSQL may be another server than before, since a failover to a standby that had not received everything.
      const loss = last === null || database.engine === 'sqlite' ? null : await lossOf(database, last);
      if (loss !== null) throw new DatabaseError(loss, { code: LOST });
      last = await options.write(head, now());
      failing = false;
    } catch (error) {
      if (!failing) onError(error);
      failing = true;
      chain ??= noted;
      writeSoon();
    }
  };
  const writeSoon = () => {
    if (closed || timer !== null) return;
    timer = setTimeout(() => {
      writing = writing.then(write);
    }, EVERY_MS).unref();
  };
  // At the first start already, so that a database that is emptied before its first operation is noticed too.
  await write();

  return {
    noting: (listener) => (batch) => {
      listener(batch);
      chain = batch.chain;
      writeSoon();
    },
    async close() {
      closed = true;
      if (timer) clearTimeout(timer);
      await writing;
      await write();
    },
  };
}

/** A text that says what the database lacks, for the operator. null if the journal has the remembered batch. */
export async function lossOf(database: OpenDatabase, remembered: RememberedHead): Promise<string | null> {
  const { chain, n, at } = remembered;
  const comparison = await compareJournal(database, remembered);
  if (comparison.state === 'there') return null;
  const known = `This gateway has written batch ${n} of the journal (chain ${chain}, known since ${at})`;
  return comparison.state === 'behind'
    ? `${known}, and the database ends at batch ${comparison.end}: operations that were acknowledged are missing.`
    : `${known}, and the database has another batch ${n}: it is another database, or was restored and written to since.`;
}
