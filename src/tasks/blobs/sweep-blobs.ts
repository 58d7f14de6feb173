import { loadStatement, type Database } from '#store';
import type { BlobFiles } from './blob-files.ts';

interface SweepOptions {
  readonly database: Pick<Database, 'query'>;
  readonly stores: readonly BlobFiles[];
  readonly now: () => number;
  /** Called once per store and sweep if the store failed to remove files. */
  readonly onUnremoved: (error: unknown) => void;
}

const HOUR_MS = 3_600_000;
/** Failures after which a sweep skips the rest of a store. */
const UNREMOVED_MAX = 3;

const EXPIRED = loadStatement(import.meta.url, './sql/expired-blobs.sql');
const POSTPONE = loadStatement(import.meta.url, './sql/postpone-blob.sql');
const DROP = loadStatement(import.meta.url, './sql/drop-blob.sql');
const DROP_EXPIRED = loadStatement(import.meta.url, './sql/drop-expired-blobs.sql');
const EXPIRED_ROOMS = loadStatement(import.meta.url, './sql/expired-rooms.sql');

/**
 * Removes expired files, rows and rooms, at most `limit` of each kind. Resolves with the highest of these numbers. A
 * row is removed after its file. A file that a store failed to remove is tried again after all other expired files.
 */
export async function sweepBlobs(options: SweepOptions, limit: number): Promise<number> {
  const { database, stores, now } = options;
  const at = now();
  const removed: number[] = [];
  for (const store of stores) removed.push(await removeExpired(options, store, limit));
  const holders = JSON.stringify(Object.fromEntries(stores.map(({ holder }, index) => [index, [holder]])));
  const rows = await database.query(DROP_EXPIRED, [at, holders, at - HOUR_MS, limit]);
  const rooms = await database.query(EXPIRED_ROOMS, [at, limit]);
  return Math.max(rows.length, rooms.length, ...removed);
}

/** Removes expired files of a store with their rows. Resolves with their number. */
async function removeExpired(
  { database, now, onUnremoved }: SweepOptions,
  store: BlobFiles,
  limit: number,
): Promise<number> {
  let removed = 0;
  let unremoved = 0;
  for (const { id } of await database.query(EXPIRED, [now(), store.holder, limit])) {
    try {
      await store.remove(id as string);
    } catch (error) {
      if (unremoved === 0) onUnremoved(error);
      unremoved += 1;
      // Otherwise a few files that cannot be removed would be first in every sweep, and it would stop at them.
      await database.query(POSTPONE, [id!, now()]);
      if (unremoved === UNREMOVED_MAX) break;
      continue;
    }
    await database.query(DROP, [id!]);
    removed += 1;
  }
  return removed;
}
