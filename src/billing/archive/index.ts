/** Archives of the ledger, for the gateway's composition and for commands. */

export { type ArchiveOptions, type ArchiveRun, archivePeriod, finishArchive } from './archive-period.ts';
export { RECENT_DAYS } from './archive-plan.ts';
export { findInArchive } from './find-in-archive.ts';
export { type VerifiedArchive, verifyArchive } from './verify-archive.ts';
