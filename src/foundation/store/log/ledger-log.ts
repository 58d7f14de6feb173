import fs from 'node:fs';
import { promisify } from 'node:util';
import { DatabaseError } from '../database.ts';
import { RecordEncoder, type LogHead } from './record.ts';
import type { SharedProgress } from './shared-progress.ts';
import { giveToOwner } from '../owner.ts';
import { SEGMENT_BYTES, segmentPath } from './segments.ts';

/** The log of the embedded ledger. Records are appended one at a time. */
export interface LedgerLog {
  /** The last record on disk. */
  readonly head: LogHead;
  /**
   * Appends one record, which is on disk when the promise resolves. If it rejects with DatabaseError, the log is
   * unchanged. It waits if the tables are too far behind, so that a restart has little to replay.
   */
  append(at: number, payload: string): Promise<void>;
  /**
   * Set by who appends, if it appends later than it answers. Called before a statement about the ledger's tables: makes
   * what was answered before a part of the log, and resolves then. null if there is nothing to append.
   */
  beforeReading: (() => Promise<void> | null) | null;
  close(): Promise<void>;
}

/** How far the tables may be behind, in bytes of log: about 15,000 calls, or half a second of a restart. */
const BEHIND_MAX = 8 * 1024 * 1024;

interface Tables {
  follow(): Promise<void>;
  /** Makes the tables follow in the background. */
  wake(): void;
}

export function openLedgerLog(start: LogStart, progress: SharedProgress, tables: Tables): LedgerLog {
  const writer = openLogWriter(start);
  let isClosed = false;
  /** The append under way. */
  let appending: Promise<void> = Promise.resolve();
  const append = async (at: number, payload: string) => {
    if (progress.state === 'stopped' || progress.end - progress.followed > BEHIND_MAX)
      await tables.follow().catch(unavailable);
    // It may have been closed while the tables followed.
    if (isClosed) throw closed();
    await writer.append(at, payload);
    progress.end = writer.head.position;
    if (!progress.wake()) tables.wake();
  };
  return {
    beforeReading: null,
    get head() {
      return writer.head;
    },
    append(at, payload) {
      if (isClosed) return Promise.reject(closed());
      return (appending = append(at, payload));
    },
    async close() {
      isClosed = true;
      // A record that is being written must not be cut off.
      await appending.catch(() => {});
      await writer.close();
    },
  };
}

const closed = () => new DatabaseError('The database is closed', { code: 'closed', unavailable: true });

/** Refuses an append because the tables cannot follow the log. */
function unavailable(error: unknown): never {
  if (error instanceof DatabaseError && error.unavailable) throw error;
  const message = `The tables cannot follow the log of the ledger: ${(error as Error).message}`;
  throw new DatabaseError(message, { code: 'behind', unavailable: true, cause: error });
}

/**
 * The end of a log: `head`, in the segment that begins at `segment`. If `segment` is null, the next record begins a new
 * segment.
 */
export interface LogStart {
  readonly folder: string;
  readonly head: LogHead;
  readonly segment: number | null;
}

interface LogWriter {
  readonly head: LogHead;
  /**
   * Appends one record, which is on disk when the promise resolves. Do not call it again before that. If it rejects
   * with DatabaseError, the end of the log is unchanged.
   */
  append(at: number, payload: string): Promise<void>;
  close(): Promise<void>;
}

/** How a segment is opened, and whether a write to it is on the disk when it ends. */
const { O_RDWR, O_CREAT, O_EXCL, O_DSYNC } = fs.constants;
/** On macOS this flag does not reach the disk, but `fdatasync` does. */
const WRITES_FLUSH = process.platform === 'linux';
const OPEN = WRITES_FLUSH ? O_RDWR | O_DSYNC : O_RDWR;

/** A segment is filled with zeros so far ahead, in pieces of this size. */
const AHEAD_BYTES = 2 * 1024 * 1024;
const ZEROS = Buffer.alloc(256 * 1024);

/**
 * Writes the log. After a failed write or flush, the bytes of that record may or may not be on disk, and a later flush
 * of the same file may report success for them. So the file is truncated, and the next record begins a new segment. The
 * name of the new segment shows where the old one ends.
 *
 * A record is written where zeros are on the disk already. So its flush changes neither the size of the file nor the
 * blocks that it has, and the file system need not commit its own journal for it.
 */
function openLogWriter(start: LogStart): LogWriter {
  const { folder } = start;
  const encoder = new RecordEncoder();
  let head = start.head;
  let segment = start.segment ?? head.position;
  let file: number | null = null;
  let isSuspect = start.segment === null;
  /** The end of the zeros, in bytes of the segment. */
  let filled = 0;
  let filling: Promise<void> | null = null;

  const beginSegment = async () => {
    await filling;
    if (file !== null) {
      const old = file;
      file = null;
      await call((done) => fs.close(old, done)).catch(() => {});
    }
    const path = segmentPath(folder, head.position);
    // The file may exist, left by an attempt that failed before its first record.
    await fs.promises.rm(path, { force: true });
    file = await open(path, OPEN | O_CREAT | O_EXCL, 0o600);
    giveToOwner(file, folder);
    const directory = await open(folder, 'r');
    await call((done) => fs.fsync(directory, done)).finally(() => fs.closeSync(directory));
    segment = head.position;
    filled = 0;
    isSuspect = false;
  };

  const writeAll = (target: number, bytes: Buffer, offset: number) =>
    new Promise<void>((resolve, reject) => {
      let sent = 0;
      const flushed = (error: Error | null) => (error ? reject(error) : resolve());
      const write = () => fs.write(target, bytes, sent, bytes.byteLength - sent, offset + sent, written);
      const written = (error: Error | null, count: number) => {
        if (error) return reject(error);
        sent += count;
        if (sent < bytes.byteLength) write();
        else if (WRITES_FLUSH) resolve();
        else fs.fdatasync(target, flushed);
      };
      write();
    });

  /**
   * Writes zeros ahead of the records. If the disk is full, the records extend the file themselves. It has a descriptor
   * of its own, because the system reports a failed flush once for each, and must not report that of a record here.
   */
  const fill = async () => {
    const to = head.position - segment + AHEAD_BYTES;
    try {
      const target = await open(segmentPath(folder, segment), OPEN);
      try {
        for (; filled < to; filled += ZEROS.byteLength) await writeAll(target, ZEROS, filled);
      } finally {
        await call((done) => fs.close(target, done));
      }
    } catch (error) {
      filled = Number.MAX_SAFE_INTEGER;
      if (!FULL.has((error as NodeJS.ErrnoException).code ?? '')) isSuspect = true;
    }
    filling = null;
  };

  const isSegmentOver = () => isSuspect || head.position - segment >= SEGMENT_BYTES;

  const openSegment = async () => {
    if (isSegmentOver()) {
      isSuspect = true;
      await beginSegment();
    }
    if (file !== null) return;
    file = await open(segmentPath(folder, segment), OPEN);
    filled = head.position - segment;
  };

  return {
    get head() {
      return head;
    },
    async append(at, payload) {
      const { bytes, head: next } = encoder.encode(head, at, payload);
      try {
        if (file === null || isSegmentOver()) await openSegment();
        const target = file!;
        const offset = head.position - segment;
        const end = offset + bytes.byteLength;
        // Zeros must not be written where a record is.
        if (end > filled && filling !== null) await filling;
        filled = Math.max(filled, end);
        try {
          await writeAll(target, bytes, offset);
        } catch (error) {
          isSuspect = true;
          await filling;
          // If this fails too, the name of the next segment still shows where this one ends.
          await call((done) => fs.ftruncate(target, offset, done)).catch(() => {});
          throw error;
        }
        if (filled - end < AHEAD_BYTES / 2) filling ??= fill();
      } catch (error) {
        throw toDatabaseError(error, folder);
      }
      head = next;
    },
    async close() {
      const old = file;
      file = null;
      await filling;
      if (old === null) return;
      // The zeros behind the last record.
      if (!isSuspect) await call((done) => fs.ftruncate(old, head.position - segment, done)).catch(() => {});
      await call((done) => fs.close(old, done));
    },
  };
}

const open = promisify(fs.open);

const call = (run: (done: (error: Error | null) => void) => void) =>
  new Promise<void>((resolve, reject) => run((error) => (error ? reject(error) : resolve())));

/** No disk space or no quota left. */
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

function toDatabaseError(cause: unknown, folder: string): DatabaseError {
  const { code = 'log', message } = cause as NodeJS.ErrnoException;
  const text = `The log of the ledger in ${folder} cannot be written: ${message}`;
  return new DatabaseError(text, { code, unavailable: true, full: FULL.has(code), cause });
}
