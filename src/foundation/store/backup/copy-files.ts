import { closeSync, createReadStream, existsSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { createHash } from 'node:crypto';
import { openFrames } from '../log/frames.ts';
import { LogCorrupt, readToEnd } from '../log/reader.ts';
import type { LogHead } from '../log/record.ts';
import { compressedPath, LOG_FOLDER, listSegments, segmentPath, type Segment } from '../log/segments.ts';
import { BackupError, type ArchiveEntry } from './archive.ts';
import { DATABASE, type MissingMedia } from './manifest.ts';
import { BUCKET_HOLDER, MEDIA_FOLDER, MEDIA_HOLDER, mediaPath } from '../owner.ts';

/** A copy of the tables and the log of an embedded database, while its gateway continues. */
interface EmbeddedCopy {
  readonly migrations: readonly string[];
  /** The last record of the log that is copied. */
  readonly head: LogHead;
  entries(): AsyncGenerator<ArchiveEntry>;
}

/** More pages than any database has. */
const PAGES_MAX = 2 ** 31 - 1;

interface Position {
  readonly position: bigint;
  readonly n: bigint;
  readonly hash: string;
}

/**
 * Copies the tables to `draft` and finds the end of the log. The tables are read in one snapshot. The end of the log is
 * read after the snapshot has begun. So the copied log has everything that the tables have, and at most a few
 * milliseconds more, which the next start replays.
 */
export async function copyEmbedded(dataDir: string, draft: string): Promise<EmbeddedCopy> {
  const path = join(dataDir, DATABASE);
  const folder = join(dataDir, LOG_FOLDER);
  const source = new DatabaseSync(path, { readOnly: true, readBigInts: true, timeout: 5_000 });
  let migrations: readonly string[];
  let head: LogHead;
  try {
    // The transaction sees the state at its first read until it ends. It does not block writers, and writers do not
    // block it.
    source.exec('BEGIN');
    const followed = positionOf(source);
    migrations = source
      .prepare('SELECT name FROM migrations ORDER BY name')
      .all()
      .map((row) => row['name'] as string);
    head = endOfLog(folder, followed);
    // All pages in one step. With several steps, a write in between could restart the copy.
    await backup(source, draft, { rate: PAGES_MAX });
    const copied = readCopy(draft);
    if (copied.position !== followed.position)
      throw new BackupError('The tables changed while they were copied: run the backup again');
  } finally {
    source.close();
  }
  return {
    migrations,
    head,
    async *entries() {
      yield fileEntry(DATABASE, draft);
      if (!existsSync(folder)) return;
      const segments = listSegments(folder).filter(({ start }) => start < head.position);
      for (const segment of segments) yield segmentEntry(segment, head.position, segment === segments.at(-1));
    },
  };
}

function positionOf(database: DatabaseSync): Position {
  return database.prepare('SELECT position, n, hash FROM ledger_log').get() as unknown as Position;
}

function readCopy(path: string): Position {
  const copy = new DatabaseSync(path, { readOnly: true, readBigInts: true });
  try {
    return positionOf(copy);
  } finally {
    copy.close();
  }
}

/** While a gateway writes, its log is read so often. */
const READS_MAX = 5;

/**
 * The last complete record. Throws LogCorrupt. Records that a gateway writes during the reading can look as if they
 * followed damaged bytes, because those before them were read as the zeros that were there. So the log is read again.
 */
function endOfLog(folder: string, { position, n, hash }: Position): LogHead {
  const from = { position: Number(position), n: Number(n), hash };
  if (!existsSync(folder)) return from;
  for (let reads = 1; ; reads += 1) {
    try {
      const records = readToEnd(folder, from);
      for (;;) {
        const { done, value } = records.next();
        if (done) return value;
      }
    } catch (error) {
      if (!(error instanceof LogCorrupt) || reads === READS_MAX) throw error;
    }
  }
}

/** A segment of the log, up to position `to`. */
function segmentEntry(segment: Segment, to: number, isLast: boolean): ArchiveEntry {
  const { start, path, isCompressed } = segment;
  const name = (file: string) => `${LOG_FOLDER}/${basename(file)}`;
  if (isCompressed && !isLast) return fileEntry(name(path), path);
  if (!isCompressed)
    try {
      return fileEntry(name(path), path, to - start);
    } catch (error) {
      // The segment was compressed after the folder was listed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  const plain = segmentPath('', start);
  const part = openFrames(isCompressed ? path : compressedPath(path)).read(0, to - start);
  return { name: name(plain), bytes: part.byteLength, content: [part] };
}

/** A file with its current length, or its first `limit` bytes. Bytes that are appended later are ignored. */
export function fileEntry(name: string, path: string, limit = Number.MAX_SAFE_INTEGER): ArchiveEntry {
  const fd = openSync(path, 'r');
  const bytes = Math.min(fstatSync(fd).size, limit);
  if (bytes > 0) return { name, bytes, content: createReadStream('', { fd, end: bytes - 1 }) as AsyncIterable<Buffer> };
  closeSync(fd);
  return { name, bytes, content: [] };
}

interface MediaCopy {
  /** Files that the tables name but the backup lacks. Complete after `entries` has ended. */
  readonly missing: readonly MissingMedia[];
  entries(): AsyncGenerator<ArchiveEntry>;
}

/** The files that the tables name, in the snapshot of the backup. */
export interface MediaRows {
  readonly files: readonly StoredFile[];
  /** The addresses of stores, where other gateways fetch their files. */
  readonly holders: readonly { readonly id: string; readonly url: string }[];
}

interface StoredFile {
  readonly id: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly holder: string;
}

/** The queries for `MediaRows`, for both engines. */
export const STORED_FILES =
  "SELECT id, CAST(bytes AS DOUBLE PRECISION) AS bytes, sha256, holder FROM blobs WHERE state = 'stored' ORDER BY id";
export const MEDIA_HOLDERS = 'SELECT id, url FROM blob_holders';

export function mediaRowsOf(draft: string): MediaRows {
  const tables = new DatabaseSync(draft, { readOnly: true });
  try {
    return {
      files: tables.prepare(STORED_FILES).all() as unknown as MediaRows['files'],
      holders: tables.prepare(MEDIA_HOLDERS).all() as unknown as MediaRows['holders'],
    };
  } finally {
    tables.close();
  }
}

/**
 * Finds the files that the tables name, in the data directory of one gateway. Each file is read twice, in parts: first
 * to compare it with the tables, then to copy it. A file that differs from the tables is left out, so that it does not
 * prevent the backup of the books.
 */
export async function copyMedia(dataDir: string, { files, holders }: MediaRows): Promise<MediaCopy> {
  const own = holderIn(dataDir);
  const whole: StoredFile[] = [];
  const absent: StoredFile[] = [];
  for (const file of files) {
    const isHere = await isWhole(join(dataDir, pathOf(file.id)), file);
    (isHere ? whole : absent).push(file);
  }
  const urls = new Map(holders.map(({ id, url }) => [id, url]));
  return {
    get missing() {
      return missingOf(absent, own, urls);
    },
    async *entries() {
      // This file has the name of the store, which the rows refer to.
      if (own !== null) yield fileEntry(HOLDER, join(dataDir, HOLDER));
      for (const file of whole) {
        const path = join(dataDir, pathOf(file.id));
        if (existsSync(path)) yield fileEntry(pathOf(file.id), path);
        // The file has expired meanwhile.
        else absent.push(file);
      }
    },
  };
}

/** The path, in the data directory, of the file with the store's name. */
const HOLDER = `${MEDIA_FOLDER}/${MEDIA_HOLDER}`;
const pathOf = (id: string): string => `${MEDIA_FOLDER}/${mediaPath(id)}`;

/** The name of the store in a data directory; null without a store. */
export function holderIn(dataDir: string): string | null {
  const path = join(dataDir, HOLDER);
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

function missingOf(
  absent: readonly StoredFile[],
  own: string | null,
  urls: ReadonlyMap<string, string>,
): readonly MissingMedia[] {
  return Map.groupBy(absent, ({ holder }) => holder)
    .entries()
    .map(([holder, files]): MissingMedia => {
      const where = holder === own ? 'here' : holder.startsWith(BUCKET_HOLDER) ? 'bucket' : 'gateway';
      // A bucket may have an address too: that of a gateway that older gateways asked for its files.
      const url = where === 'gateway' ? (urls.get(holder) ?? null) : null;
      return { where, holder, url, files: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
    })
    .toArray();
}

async function isWhole(path: string, { bytes, sha256 }: StoredFile): Promise<boolean> {
  if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return false;
  const digest = createHash('sha256');
  for await (const part of createReadStream(path) as AsyncIterable<Buffer>) digest.update(part);
  return digest.digest('hex') === sha256;
}
