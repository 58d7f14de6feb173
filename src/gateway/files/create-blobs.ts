import { hash, randomBytes } from 'node:crypto';
import { listParam, loadStatements, rowReader, type Database } from '#store';
import { type Blob, BlobUnreachable, type Blobs, type BlobWriter, type NewBlob, type NewRoom } from './blob.ts';
import type { BlobFiles, OpenBlobFile } from './blob-files.ts';
import type { FarBlobs } from './far-blobs.ts';
import { refuseBeyondShare, type RoomLimits, type UsedRoom } from './room-shares.ts';

interface BlobsOptions {
  readonly database: Pick<Database, 'query'>;
  readonly files: BlobFiles;
  /** Stores that were used earlier. Their files can be read and removed, but no new files are written to them. */
  readonly former?: readonly BlobFiles[];
  /** The files of other gateways; null for a single gateway. */
  readonly far: FarBlobs | null;
  readonly limits: BlobLimits;
  readonly now: () => number;
  /** Called when a store failed to remove an expired file. A later sweep tries again. */
  readonly onUnremoved?: (error: unknown) => void;
  /** The lease for writing a file, in milliseconds. If a gateway does not renew it, another one may write the file. */
  readonly leaseMs?: number;
}

interface BlobLimits extends RoomLimits {
  readonly keepMs: number;
}

const LEASE_MS = 15_000;
/** Renewals per lease period. */
const RENEWALS = 3;
const HOUR_MS = 3_600_000;
/** Failures after which a sweep skips the rest of a store. */
const UNREMOVED_MAX = 3;
const UNWRITTEN = new Error('another process now writes the file');

const SQL = loadStatements(import.meta.url, './sql/blobs.sql', [
  'claimBlob',
  'renewBlob',
  'storeBlob',
  'dropBlob',
  'findBlob',
  'findBlobs',
  'countBlobBytes',
  'takeRoom',
  'giveRoomBack',
  'reserveForBlob',
  'expireBlob',
  'expiredBlobs',
  'postponeBlob',
  'dropExpiredBlobs',
  'expiredRooms',
]);

interface Claim {
  readonly id: string;
  readonly account: string;
  readonly reserved: number;
  readonly isFree: boolean;
}

/** The source id of a file: a digest of the names that identify its content. */
export const sourceOf = (...names: readonly (string | number)[]): string => hash('sha256', JSON.stringify(names));

export function createBlobs({ database, files, former = [], far, limits, now, ...rest }: BlobsOptions): Blobs {
  const { leaseMs = LEASE_MS, onUnremoved = () => {} } = rest;
  const stores = [files, ...former];
  const { keepMs, fileBytesMax } = limits;
  /** No file is larger than `fileBytesMax`, so no more is reserved for it. */
  const toReserve = (bytes = fileBytesMax) => Math.min(bytes, fileBytesMax);

  /** Claims the writing of a file. null if the file is stored or another call is writing it. */
  async function claim({ source, account, room, bytes }: NewBlob): Promise<Claim | null> {
    const at = now();
    const id = randomBytes(16).toString('hex');
    const expiresAt = at + Math.max(keepMs, HOUR_MS);
    const claimed = [id, source, account, files.holder, at + leaseMs, at, expiresAt, room ?? null, toReserve(bytes)];
    const [row] = await database.query(SQL.claimBlob, claimed);
    return row ? { id, account, reserved: Number(row['reserved']), isFree: Number(row['free']) === 1 } : null;
  }

  /** Renews the lease while a file is written. Aborts `lost` if the lease was lost. */
  function holdLease(id: string, file: OpenBlobFile) {
    const lost = new AbortController();
    const renew = async () => {
      try {
        const rows = await database.query(SQL.renewBlob, [id, now() + leaseMs, file.bytes]);
        if (rows.length === 0) lost.abort(UNWRITTEN);
      } catch {
        // The database may be back before the lease ends.
      }
    };
    const timer = setInterval(() => void renew(), leaseMs / RENEWALS);
    return { lost: lost.signal, end: () => clearInterval(timer) };
  }

  /** Rejects with GatewayError if there is no room for `bytes` more besides stored files and reserved rooms. */
  async function refuseMore(account: string, bytes: number, isFree: boolean): Promise<void> {
    const [[row], disk] = await Promise.all([
      database.query(SQL.countBlobBytes, [account, fileBytesMax, now()]),
      files.free(),
    ]);
    refuseBeyondShare(limits, { ...toUsed(row!), disk }, bytes, isFree);
  }

  /** Reserves more room for a file that is being written. As in `takeRoom`: taken first and checked afterwards. */
  async function reserve({ id, account, isFree }: Claim, bytes: number): Promise<void> {
    if ((await database.query(SQL.reserveForBlob, [id, bytes])).length === 0) throw UNWRITTEN;
    await refuseMore(account, 0, isFree);
  }

  /** Removes expired files of a store with their rows. Resolves with their number. */
  async function removeExpired(store: BlobFiles, limit: number): Promise<number> {
    let removed = 0;
    let unremoved = 0;
    for (const { id } of await database.query(SQL.expiredBlobs, [now(), store.holder, limit])) {
      try {
        await store.remove(id as string);
      } catch (error) {
        if (unremoved === 0) onUnremoved(error);
        unremoved += 1;
        // Otherwise a few files that cannot be removed would be first in every sweep, and it would stop at them.
        await database.query(SQL.postponeBlob, [id!, now()]);
        if (unremoved === UNREMOVED_MAX) break;
        continue;
      }
      await database.query(SQL.dropBlob, [id!]);
      removed += 1;
    }
    return removed;
  }

  const giveRoomBack = async (id: string) => void (await database.query(SQL.giveRoomBack, [id]));

  return {
    admit: (account, { files: count, fileBytes, isFree = false }) =>
      refuseMore(account, count * toReserve(fileBytes), isFree),

    async takeRoom({ id, account, files: count, fileBytes, isFree = false, expiresAt }: NewRoom) {
      // The room is taken first and checked afterwards, so that two concurrent calls see each other.
      await database.query(SQL.takeRoom, [id, account, count, expiresAt, toReserve(fileBytes), isFree ? 1 : 0]);
      try {
        await refuseMore(account, 0, isFree);
      } catch (error) {
        await giveRoomBack(id);
        throw error;
      }
    },
    giveRoomBack,

    async write(file, fill) {
      if (file.room === undefined) await refuseMore(file.account, toReserve(file.bytes), false);
      const claimed = await claim(file);
      if (claimed === null) return null;
      const { id } = claimed;
      let openFile: OpenBlobFile | null = null;
      try {
        openFile = await files.create(id, fileBytesMax);
        const lease = holdLease(id, openFile);
        try {
          const { type, notes } = await fill(new GrowingFile(openFile, claimed, fileBytesMax, reserve), lease.lost);
          const { sha256, crc32 } = await openFile.finish();
          const at = now();
          const [row] = await database.query(SQL.storeBlob, [
            id,
            openFile.bytes,
            type,
            sha256,
            crc32,
            notes,
            at + keepMs,
          ]);
          if (!row) throw UNWRITTEN;
          return toBlob(row);
        } finally {
          lease.end();
        }
      } catch (error) {
        await openFile?.drop();
        // If the store is not reachable, removeOrphans removes the remains later.
        await files.remove(id).catch(() => {});
        await database.query(SQL.dropBlob, [id]).catch(() => {});
        throw error;
      }
    },

    async find(sources) {
      const blobs = new Map(
        (await database.query(SQL.findBlobs, [listParam(sources), now()]))
          .map(toBlob)
          .map((blob) => [blob.source, blob]),
      );
      return sources.flatMap((source) => blobs.get(source) ?? []);
    },

    async read(blob, range) {
      const store = stores.find(({ holder }) => holder === blob.holder);
      if (store) return store.read(blob.id, range);
      if (far === null) throw new BlobUnreachable('the file is at another gateway, which has no cluster.url');
      return far.read(blob, range);
    },

    async remove({ id }) {
      await database.query(SQL.expireBlob, [id, now()]);
    },

    async sweep(limit) {
      const at = now();
      const removed: number[] = [];
      for (const store of stores) removed.push(await removeExpired(store, limit));
      const holders = listParam(stores.map(({ holder }) => holder));
      const rows = await database.query(SQL.dropExpiredBlobs, [at, holders, at - HOUR_MS, limit]);
      const rooms = await database.query(SQL.expiredRooms, [at, limit]);
      return Math.max(rows.length, rooms.length, ...removed);
    },
  };
}

/** A file that reserves more room when it turns out to be larger than what is reserved for it. */
class GrowingFile implements BlobWriter {
  readonly #file: OpenBlobFile;
  readonly #claim: Claim;
  readonly #bytesMax: number;
  readonly #reserve: (claim: Claim, bytes: number) => Promise<void>;
  #reserved: number;

  constructor(
    file: OpenBlobFile,
    claim: Claim,
    bytesMax: number,
    reserve: (claim: Claim, bytes: number) => Promise<void>,
  ) {
    this.#file = file;
    this.#claim = claim;
    this.#bytesMax = bytesMax;
    this.#reserve = reserve;
    this.#reserved = claim.reserved;
  }

  get bytes(): number {
    return this.#file.bytes;
  }

  async write(chunk: Uint8Array): Promise<void> {
    const needed = this.#file.bytes + chunk.byteLength;
    // A file above the limit is refused by its own write.
    if (needed > this.#reserved && needed <= this.#bytesMax) {
      this.#reserved = Math.min(this.#bytesMax, Math.max(needed, 2 * this.#reserved));
      await this.#reserve(this.#claim, this.#reserved);
    }
    await this.#file.write(chunk);
  }
}

/**
 * Removes files without a row that were last changed more than an hour ago. Such files remain if a process dies while
 * writing, or if they expire while no gateway runs. Resolves with their number.
 */
export async function removeOrphans({
  database,
  files,
  now,
}: Pick<BlobsOptions, 'database' | 'files' | 'now'>): Promise<number> {
  const { ids, parts } = await files.olderThan(now() - HOUR_MS);
  let removed = 0;
  for (const { id, path } of parts) {
    if ((await database.query(SQL.findBlob, [id])).length > 0) continue;
    await files.removePart(path);
    removed += 1;
  }
  for (const id of ids) {
    if ((await database.query(SQL.findBlob, [id])).length > 0) continue;
    await files.remove(id);
    removed += 1;
  }
  return removed;
}

const toUsed = rowReader<Omit<UsedRoom, 'disk'>>({
  own: Number,
  total: Number,
  ownFree: Number,
  totalFree: Number,
  coming: Number,
});

const toBlob = rowReader<Blob>({
  bytes: Number,
  crc32: Number,
  leaseUntil: Number,
  createdAt: Number,
  expiresAt: Number,
});
