import { accountOfParty, PartyShares, Places } from '#wire/places';
import { CROWDED, DatabaseError } from './database.ts';

/** Snapshots that are read at the same time. Each has a thread of its own, or one of the ten connections. */
const RUNNING_MAX = 4;
/** Snapshots that wait or are being read, of all parties and of one. */
const WAITING_MAX = 2_000;
const OF_ONE_MAX = 32;

/**
 * Shares the snapshots of a database among parties, see Database.snapshot. Without it, an account that requests a
 * hundred reports at once would get a hundred threads of 8 MiB, or all connections of the pool.
 */
export function createSnapshotPlaces() {
  const places = new Places({ total: RUNNING_MAX, perShare: RUNNING_MAX });
  const waiting = new PartyShares(OF_ONE_MAX, WAITING_MAX);
  return async <T>(party: string | null, read: () => Promise<T>): Promise<T> => {
    if (party === null) return read();
    if (!waiting.mayTake(party))
      throw new DatabaseError('Too many figures are being read at once', { code: CROWDED, unavailable: true });
    waiting.take(party);
    try {
      const place = await places.take(party, { share: accountOfParty(party) });
      return await read().finally(() => place!.release());
    } finally {
      waiting.leave(party);
    }
  };
}
