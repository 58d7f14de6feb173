/** Archives of the ledger, for the gateway's composition and for commands. */

export {
  type ArchiveOptions,
  type ArchiveProgress,
  type ArchiveRun,
  archivePeriod,
  finishArchive,
} from './archive-period.ts';
export { ArchiveError } from './archive-lines.ts';
export { DAY_MS, RECENT_DAYS } from './archive-plan.ts';
export { findInArchive } from './find-in-archive.ts';
export { registeredArchives } from './registered.ts';
export { type VerifiedArchive, verifyArchive } from './verify-archive.ts';
