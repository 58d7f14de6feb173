import { fstatSync } from 'node:fs';
import { type FileBytes, openFrames, readBytes, withFile } from './frames.ts';
import { decodeRecord, LINE_END, OPENING, type LogHead, type LogRecord } from './record.ts';
import { compressedPath, listSegments, type Segment } from './segments.ts';

/** The log has wrong or missing bytes. `message` names the file or folder, the position and what to do. */
export class LogCorrupt extends Error {
  override readonly name = 'LogCorrupt';
}

/** The tables follow a log, but no file of it exists. */
export class LogGone extends LogCorrupt {}

const RESTORE =
  'Restore the data directory from a backup: tollgate.db and the folder ledger together, from one backup.';

/** A range within one segment: the bytes from `position` to `end`. `read` takes positions too. */
interface LogPart {
  readonly segment: Segment;
  readonly position: number;
  readonly end: number;
  readonly isLast: boolean;
  readonly read: (from: number, to: number) => Buffer;
}

/**
 * The records from `from` to position `to`, a part of the log that must be complete. Throws LogCorrupt if it is not.
 * With `trusted`, only lengths are checked, not hashes and not the order of records.
 */
export function* readRecords(folder: string, from: LogHead, to: number, trusted = false): Generator<LogRecord> {
  let head = from;
  for (const part of parts(folder, from.position, to)) {
    const end = yield* recordsOf(part, head, trusted);
    head = end.head;
    if (head.position < part.end) throw corrupt(part, head);
  }
  if (head.position < to) throw missing(folder, head.position, to);
}

/**
 * The records from `from` to the end of the log; returns the end. An incomplete record at the very end was being
 * written when the process ended, so the log ends before it. Throws LogCorrupt or LogGone.
 */
export function* readToEnd(folder: string, from: LogHead): Generator<LogRecord, LogHead> {
  if (!isEndOfRecord(folder, from.position)) throw missing(folder, from.position - 1, from.position);
  let head = from;
  let last: LogPart | null = null;
  for (const part of parts(folder, from.position, Number.MAX_SAFE_INTEGER)) {
    const end = yield* recordsOf(part, head, false);
    head = end.head;
    if (head.position < part.end && (!part.isLast || hasRecordAfter(end.rest, head.position)))
      throw corrupt(part, head);
    last = part;
  }
  if (last === null && from.position > 0)
    throw new LogGone(
      `The log of the ledger is gone: ${folder} has no file of it, and tollgate.db follows it up to record ${from.n}. ` +
        `Restore the folder from a backup. Without one: tollgate restored --accept begins a new log with what tollgate.db has.`,
    );
  return head;
}

/**
 * Record `n` before position `to`, without checking its hash; null if there is no such record. It searches the newest
 * segments first.
 */
export function findRecord(folder: string, n: number, to: number): LogRecord | null {
  for (const { start } of listSegments(folder).toReversed()) {
    if (start >= to) continue;
    for (const record of readRecords(folder, { position: start, n: 0, hash: '' }, to, true)) {
      if (record.n === n) return record;
      if (record.n > n) break;
    }
  }
  return null;
}

/**
 * False if the byte before a position is not the last one of a record. The zeros behind the last record hide that a
 * file is too short.
 */
function isEndOfRecord(folder: string, position: number): boolean {
  const segment = listSegments(folder).findLast(({ start }) => start < position);
  if (segment === undefined || segment.isCompressed) return true;
  const bytes = bytesOf(segment).read(position - 1 - segment.start, position - segment.start);
  return bytes.byteLength === 0 || bytes[0] === LINE_END;
}

/** Bytes per read. The unread rest of the log, or a segment of 64 MiB, would be memory that a gateway keeps. */
const READ_BYTES = 1 << 20;

/** The records of a part. Returns the last one, and the bytes after it if no complete, valid record begins there. */
function* recordsOf(
  part: LogPart,
  from: LogHead,
  trusted: boolean,
): Generator<LogRecord, { head: LogHead; rest: Buffer }> {
  const { segment } = part;
  let head = from;
  let length = READ_BYTES;
  let rest: Buffer = Buffer.alloc(0);
  while (head.position < part.end) {
    const { position } = head;
    const to = Math.min(part.end, position + length);
    rest = part.read(position, to);
    for (let offset = 0; offset < rest.byteLength; offset = head.position - position) {
      const record = decodeRecord(rest, offset, head.position, trusted);
      if (record === null) break;
      if (!trusted && (record.n !== head.n + 1 || record.prev !== head.hash))
        throw new LogCorrupt(
          `${segment.path} is corrupt at byte ${head.position - segment.start}: record ${record.n} does not follow record ${head.n}. ${RESTORE}`,
        );
      yield record;
      head = record;
    }
    if (head.position > position) length = READ_BYTES;
    else if (to === part.end) break;
    // A record of more bytes, or the damaged or incomplete end of the log.
    else length *= 2;
  }
  return { head, rest };
}

/** The bytes between two positions, one part per segment. */
function* parts(folder: string, from: number, to: number): Generator<LogPart> {
  const segments = listSegments(folder);
  if (segments.length > 0 && segments[0]!.start > from) throw missing(folder, from, segments[0]!.start);
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    const end = Math.min(to, next?.start ?? Number.MAX_SAFE_INTEGER);
    if (end <= from || segment.start >= to) continue;
    const position = Math.max(from, segment.start);
    const { start } = segment;
    const { byteLength, read } = bytesOf(segment);
    const known = start + byteLength;
    if (known < position) throw missing(folder, known, position);
    if (known < end && (next !== undefined || to !== Number.MAX_SAFE_INTEGER)) throw missing(folder, known, end);
    yield {
      segment,
      position,
      end: Math.min(end, known),
      isLast: next === undefined,
      read: (first, last) => read(first - start, last - start),
    };
  }
}

function bytesOf(segment: Segment): FileBytes {
  const { path } = segment;
  if (segment.isCompressed) return openFrames(path);
  // The segment was compressed after the folder was listed, or is so between two reads.
  let instead: FileBytes | null = null;
  const plain = <T>(use: (file: number) => T, compressed: (bytes: FileBytes) => T): T => {
    if (instead !== null) return compressed(instead);
    try {
      return withFile(path, use);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      return compressed((instead = openFrames(compressedPath(path))));
    }
  };
  return {
    byteLength: plain(
      (file) => fstatSync(file).size,
      ({ byteLength }) => byteLength,
    ),
    read: (from, to) =>
      plain(
        (file) => readBytes(file, from, to),
        ({ read }) => read(from, to),
      ),
  };
}

/**
 * True if a valid record begins somewhere in the bytes from `position` on, after the first. Then what is before it is
 * damaged, not just incomplete.
 */
function hasRecordAfter(bytes: Buffer, position: number): boolean {
  let offset = 0;
  while ((offset = bytes.indexOf(OPENING, offset + 1)) >= 0)
    if (decodeRecord(bytes, offset, position + offset) !== null) return true;
  return false;
}

const corrupt = ({ segment }: LogPart, { position, n }: LogHead) =>
  new LogCorrupt(
    `${segment.path} is corrupt at byte ${position - segment.start}, after record ${n}: no valid record begins there, and the log goes on after it. ${RESTORE}`,
  );

const missing = (folder: string, from: number, to: number) =>
  new LogCorrupt(`The log in ${folder} has no bytes ${from} to ${to}, which the database knows of. ${RESTORE}`);
