import { join } from 'node:path';
import { DatabaseError, openDatabase, type OpenDatabase } from '#store';
import {
  audit,
  type AuditCheck,
  type AuditOptions,
  createLedger,
  expireOrphans,
  hasOldBooks,
  type JournalWatch,
  type LedgerBatch,
  lossOf,
  watchJournal,
} from '#billing/compose';
import { LOST, type AuditReport, type Ledger } from '#billing';
import { COMPARE_TEMPORARY, compareSums } from '#analytics';
import type { Identity } from '#auth/identity';
import {
  ACCEPT,
  type GuardedJournal,
  journalFile,
  type JournalFile,
  JournalLost,
  openJournalFile,
  refuseMissingDatabase,
} from './journal-file.ts';
import { identityOf, knownSeeds, noteIdentity, refuseOtherIdentity, replaceSeed } from './known-identity.ts';
// Not from `#auth`, because a command would then load a whole gateway to read one file.

export { lossOf } from '#billing/compose';
export { journalFile, JournalLost, openJournalFile, refuseMissingDatabase } from './journal-file.ts';

interface JournaledOptions {
  readonly config: GuardedJournal;
  readonly logger: { warn(fields: object, text: string): void };
  readonly resources: AsyncDisposableStack;
  readonly now: () => number;
}

interface Journaled {
  readonly database: OpenDatabase;
  readonly journal: JournalWatch;
}

/**
 * Opens the database and the watch of its journal. `opened` closes both. Rejects with JournalLost if the database is
 * missing, or if its journal lacks the batch that `journal-head.json` names.
 */
export async function openJournaled(options: JournaledOptions): Promise<Journaled> {
  const database = await openGuarded(options);
  const journal = await openWatch(options, database);
  await auditOldBooks(database, options.logger);
  return { database, journal };
}

/**
 * As openJournaled, for a gateway, which gets its identity too. Rejects with IdentityError if the database belongs to
 * another one.
 */
export async function openOwnJournaled(
  options: JournaledOptions,
): Promise<Journaled & { readonly identity: Identity }> {
  const database = await openGuarded(options);
  const { config, logger, now } = options;
  const isNew = await replaceSeed(database, config, now());
  const identity = identityOf(config, await knownSeeds(database));
  if (isNew) logger.warn({ identity: identity.receiptKey.id }, 'the database has a new identity seed');
  // Before `journal-head.json` is written with it.
  await refuseOtherIdentity(database, identity);
  const journal = await openWatch(options, database);
  // After the journal was compared, which an identity of before has authenticated.
  await noteIdentity(database, identity, now());
  await auditOldBooks(database, logger);
  return { database, journal, identity };
}

async function openGuarded({ config, resources }: JournaledOptions): Promise<OpenDatabase> {
  refuseMissingDatabase(config);
  const database = await openDatabase({ url: config.databaseUrl, dataDir: config.dataDir });
  resources.defer(() => database.close());
  return database;
}

async function openWatch(
  { config, logger, resources, now }: JournaledOptions,
  database: OpenDatabase,
): Promise<JournalWatch> {
  const file = openJournalFile(config);
  const remembered = file.read();
  const loss = remembered === null ? null : await lossOf(database, remembered);
  if (loss !== null) throw new JournalLost(`${loss}\nRestore the newest copy of the database.\n${ACCEPT}`);
  // The next start may know only one of two seeds.
  if (remembered !== null && config.secondIdentitySeed !== null)
    await file.write(remembered, Date.parse(remembered.at));
  const onError = (error: unknown) =>
    logger.warn(
      { err: error },
      error instanceof DatabaseError && error.code === LOST
        ? 'the database lacks operations that were acknowledged: journal-head.json is left as it is, and the next start asks what to do'
        : 'journal-head.json cannot be written: until it can, the gateway would not notice a loss of new records',
    );
  const journal = await watchJournal({ database, remembered, write: file.write, now, onError });
  resources.defer(() => journal.close());
  return journal;
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

/**
 * Audits the books, with two more checks. One compares the sums of analytics with the ledger. The other checks that the
 * journal has the batch that `journal-head.json` names.
 */
export async function auditWithJournal(
  config: GuardedJournal,
  database: OpenDatabase,
  options: AuditOptions,
): Promise<AuditReport> {
  const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
  const archives = [...(options.archives ?? []), join(config.dataDir, 'archives')];
  const report = await audit(database, { ...options, also, archives });
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

interface LedgerParts extends Journaled {
  readonly resources: AsyncDisposableStack;
  readonly now: () => number;
  readonly flushMs: number | null;
}

/**
 * Opens the ledger of a database, with the guard of its journal. `onBatch` gets every batch of operations that the
 * ledger commits.
 */
export async function openLedger(
  { database, journal, resources, now, flushMs }: LedgerParts,
  onBatch: (batch: LedgerBatch) => void,
): Promise<Ledger> {
  const ledger = await createLedger({ database, now, flushMs, onBatch: journal.noting(onBatch) });
  resources.defer(() => ledger.close());
  // No other process can have the embedded database open, so every lock that is held now belongs to a call that died
  // with its process.
  if (database.engine === 'sqlite') await expireOrphans(ledger);
  return ledger;
}
