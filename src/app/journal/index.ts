/* What guards the journal against loss, without the gateway that uses it. */
export { auditWithJournal, lossOf } from './journal.ts';
export { JournalLost, openJournalFile, refuseMissingDatabase } from './journalfile.ts';
