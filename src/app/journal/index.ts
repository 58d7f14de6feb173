/* The guard of the journal against loss, for commands that do not load a gateway. */
export { auditWithJournal, lossOf } from './journal.ts';
export { JournalLost, openJournalFile, refuseMissingDatabase } from './journalfile.ts';
