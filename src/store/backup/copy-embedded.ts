import { closeSync, createReadStream, existsSync, fstatSync, openSync } from 'node:fs';
import { basename, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { readToEnd } from '../log/reader.ts';
import type { LogHead } from '../log/record.ts';
import { compressedPath, LOG_FOLDER, listSegments, readSegment, segmentPath, type Segment } from '../log/segments.ts';
import { BackupError, type ArchiveEntry } from './archive.ts';
import { DATABASE } from './manifest.ts';

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

/** The last complete record. Throws LogCorrupt. */
function endOfLog(folder: string, { position, n, hash }: Position): LogHead {
  const from = { position: Number(position), n: Number(n), hash };
  if (!existsSync(folder)) return from;
  const records = readToEnd(folder, from);
  for (;;) {
    const { done, value } = records.next();
    if (done) return value;
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
  const bytes = readSegment({ start, path: isCompressed ? path : compressedPath(path), isCompressed: true });
  const kept = bytes.subarray(0, to - start);
  return { name: name(plain), bytes: kept.byteLength, content: [kept] };
}

/** A file with its current length, or its first `limit` bytes. Bytes that are appended later are ignored. */
export function fileEntry(name: string, path: string, limit = Number.MAX_SAFE_INTEGER): ArchiveEntry {
  const fd = openSync(path, 'r');
  const bytes = Math.min(fstatSync(fd).size, limit);
  if (bytes > 0) return { name, bytes, content: createReadStream('', { fd, end: bytes - 1 }) as AsyncIterable<Buffer> };
  closeSync(fd);
  return { name, bytes, content: [] };
}
