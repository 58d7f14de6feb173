import { openDatabase, type OpenDatabase } from '#store';
import {
  audit,
  compareJournal,
  EMBEDDED_CHAIN,
  hasOldBooks,
  journalHead,
  type AuditCheck,
  type AuditOptions,
  type AuditReport,
  type LedgerBatch,
} from '#billing';
import type { Config } from '#config';
import { COMPARE_TEMPORARY, compareSums } from '#analytics';
import {
  ACCEPT,
  JournalLost,
  journalFile,
  openJournalFile,
  refuseMissingDatabase,
  type JournalFile,
  type RememberedHead,
} from './journalfile.ts';

/**
 * Keeps `journal-head.json` near the end of the journal. The file is a lower bound: the journal may have up to one
 * second of later operations.
 */
export interface JournalWatch {
  /**
   * Wraps `told`: the result passes every batch to it and notes the batch. The file is written about a second later. A
   * write that failed is tried again every second.
   */
  noting(told: (batch: LedgerBatch) => void): (batch: LedgerBatch) => void;
  /** Writes the file for the last time. Later batches are not noted. */
  close(): Promise<void>;
}

const EVERY_MS = 1_000;

interface JournalWatchOptions {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl' | 'identitySeed'>;
  readonly database: OpenDatabase;
  readonly now: () => number;
  /** Called at the first failure to write the file, and again only after a write has succeeded. */
  readonly onError: (error: unknown) => void;
}

/**
 * Opens the database and the watch of its journal. `opened` closes both. Rejects with JournalLost if the database is
 * missing, or if its journal lacks the batch that `journal-head.json` names.
 */
export async function openJournaled({
  config,
  logger,
  opened,
  now,
}: {
  readonly config: JournalWatchOptions['config'];
  readonly logger: { warn(fields: object, text: string): void };
  readonly opened: AsyncDisposableStack;
  readonly now: () => number;
}): Promise<{ readonly database: OpenDatabase; readonly journal: JournalWatch }> {
  refuseMissingDatabase(config);
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir });
  opened.defer(() => database.close());
  const onError = (error: unknown) =>
    logger.warn(
      { err: error },
      'journal-head.json cannot be written: until it can, the gateway would not notice a loss of new records',
    );
  const journal = await watchJournal({ config, database, now, onError });
  opened.defer(() => journal.close());
  await auditOldBooks(database, logger);
  return { database, journal };
}

/**
 * Audits a data directory that is older than the ledger's log, once, before the log begins. Until then its tables are
 * the books. The warning shows that a difference is older than the log.
 */
async function auditOldBooks(
  database: OpenDatabase,
  logger: { warn(fields: object, text: string): void },
): Promise<void> {
  if (!(await hasOldBooks(database))) return;
  const { ok, checks } = await audit(database, { overdueMs: null });
  const failed = checks.filter((check) => !check.ok).map(({ name, detail }) => ({ check: name, detail }));
  if (!ok)
    logger.warn({ failed }, "the books have differences that are older than the ledger's log: see `tollgate audit`");
}

async function watchJournal(options: JournalWatchOptions): Promise<JournalWatch> {
  const { config, database, now, onError } = options;
  const file = openJournalFile(config);
  const remembered = file.read();
  if (remembered) {
    const loss = await lossOf(database, remembered);
    if (loss !== null) throw new JournalLost(`${loss}\nRestore the newest copy of the database.\n${ACCEPT}`);
  }

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
      await file.write(await journalHead(database, noted), now());
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
  // The file is written at the first start already, so that a database that is emptied before its first operation is
  // noticed too.
  await write();

  return {
    noting: (told) => (batch) => {
      told(batch);
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

/**
 * Audits the books, with two more checks. One compares the sums of analytics with the ledger. The other checks that the
 * journal has the batch that `journal-head.json` names.
 */
export async function auditWithJournal(
  config: JournalWatchOptions['config'],
  database: OpenDatabase,
  options: AuditOptions,
): Promise<AuditReport> {
  const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
  const report = await audit(database, { ...options, also });
  const check = await checkJournal(openJournalFile(config), config.dataDir, database);
  return { ...report, ok: report.ok && check.ok, checks: [...report.checks, check] };
}

async function checkJournal(file: JournalFile, dataDir: string, database: OpenDatabase): Promise<AuditCheck> {
  const name = 'journal head';
  try {
    const remembered = file.read();
    if (remembered === null)
      return { name, ok: true, detail: `${journalFile(dataDir)} remembers nothing of this database` };
    const loss = await lossOf(database, remembered);
    return {
      name,
      ok: loss === null,
      detail: loss ?? `the journal has batch ${remembered.n}, as remembered at ${remembered.at}`,
    };
  } catch (error) {
    if (error instanceof JournalLost) return { name, ok: false, detail: error.message.split('\n')[0]! };
    throw error;
  }
}

/** A text that says what the database lacks, for the operator. null if the journal has the remembered batch. */
export async function lossOf(database: OpenDatabase, remembered: RememberedHead): Promise<string | null> {
  const { chain, n, at } = remembered;
  const found = await compareJournal(database, remembered);
  if (found.state === 'there') return null;
  const known = `This gateway has written batch ${n} of the journal (chain ${chain}, known since ${at})`;
  return found.state === 'behind'
    ? `${known}, and the database ends at batch ${found.end}: operations that were acknowledged are missing.`
    : `${known}, and the database has another batch ${n}: it is another database, or was restored and written to since.`;
}
