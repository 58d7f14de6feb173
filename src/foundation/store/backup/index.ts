export { BackupError } from './archive.ts';
export { makeBackup } from './make-backup.ts';
export type { Manifest } from './manifest.ts';
export { checkBackup, restoreBackup } from './read-backup.ts';
