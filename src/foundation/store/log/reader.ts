import { closeSync, openSync, readSync } from 'node:fs';
import { decodeRecord, LINE_END, OPENING, type LogHead, type LogRecord } from './record.ts';
import { compressedPath, listSegments, readSegment, sizeOf, type Segment } from './segments.ts';

/** The log has wrong or missing bytes. `message` names the file or folder, the position and what to do. */
export class LogCorrupt extends Error {
  override readonly name = 'LogCorrupt';
}

/** The tables follow a log, but no file of it exists. */
export class LogGone extends LogCorrupt {}

const RESTORE =
  'Restore the data directory from a backup: tollgate.db and the folder ledger together, from one backup.';

/** A part of the log in memory: the bytes from `position` on. */
interface LogPiece {
  readonly segment: Segment;
  readonly position: number;
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

/**
 * The records from `from` to position `to`, a part of the log that must be complete. Throws LogCorrupt if it is not.
 * With `trusted`, only lengths are checked, not hashes and not the order of records.
 */
export function* readRecords(folder: string, from: LogHead, to: number, trusted = false): Generator<LogRecord> {
  let head = from;
  for (const piece of pieces(folder, from.position, to)) {
    for (const record of recordsOf(piece, head, trusted)) yield (head = record);
    const end = piece.position + piece.bytes.byteLength;
    if (head.position < end) throw corrupt(piece, head);
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
  let last: LogPiece | null = null;
  for (const piece of pieces(folder, from.position, Number.MAX_SAFE_INTEGER)) {
    for (const record of recordsOf(piece, head, false)) yield (head = record);
    const end = piece.position + piece.bytes.byteLength;
    if (head.position < end && (!piece.isLast || hasRecordAfter(piece, head.position))) throw corrupt(piece, head);
    last = piece;
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
  const bytes = bytesBetween(segment, position - 1 - segment.start, position - segment.start);
  return bytes.byteLength === 0 || bytes[0] === LINE_END;
}

function* recordsOf({ bytes, position, segment }: LogPiece, from: LogHead, trusted: boolean): Generator<LogRecord> {
  let head = from;
  for (let offset = head.position - position; offset < bytes.byteLength; offset = head.position - position) {
    const record = decodeRecord(bytes, offset, head.position, trusted);
    if (record === null) return;
    if (!trusted && (record.n !== head.n + 1 || record.prev !== head.hash))
      throw new LogCorrupt(
        `${segment.path} is corrupt at byte ${head.position - segment.start}: record ${record.n} does not follow record ${head.n}. ${RESTORE}`,
      );
    yield record;
    head = record;
  }
}

/** The bytes between two positions, one piece per segment. */
function* pieces(folder: string, from: number, to: number): Generator<LogPiece> {
  const segments = listSegments(folder);
  if (segments.length > 0 && segments[0]!.start > from) throw missing(folder, from, segments[0]!.start);
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    const end = Math.min(to, next?.start ?? Number.MAX_SAFE_INTEGER);
    if (end <= from || segment.start >= to) continue;
    const position = Math.max(from, segment.start);
    const bytes = bytesBetween(segment, position - segment.start, end - segment.start);
    const known = segment.start + (bytes.byteLength === 0 ? sizeOf(segment) : end);
    if (known < position) throw missing(folder, known, position);
    const isShort = position + bytes.byteLength < end;
    if (isShort && (next !== undefined || to !== Number.MAX_SAFE_INTEGER))
      throw missing(folder, position + bytes.byteLength, end);
    yield { segment, position, bytes, isLast: next === undefined };
  }
}

/** Bytes per read. */
const READ_BYTES = 1 << 22;

function bytesBetween(segment: Segment, from: number, to: number): Buffer {
  if (segment.isCompressed) return readSegment(segment).subarray(from, to);
  const file = openPlain(segment.path);
  // The segment was compressed after the folder was listed.
  if (file === null)
    return readSegment({ ...segment, path: compressedPath(segment.path), isCompressed: true }).subarray(from, to);
  try {
    const parts: Buffer[] = [];
    for (let at = from; at < to;) {
      const part = Buffer.allocUnsafe(Math.min(to - at, READ_BYTES));
      const count = readSync(file, part, 0, part.byteLength, at);
      if (count === 0) break;
      parts.push(part.subarray(0, count));
      at += count;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  } finally {
    closeSync(file);
  }
}

function openPlain(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * True if a valid record begins somewhere after position `after`. Then the bytes before it are damaged, not just
 * incomplete.
 */
function hasRecordAfter({ bytes, position }: LogPiece, after: number): boolean {
  let offset = after - position;
  while ((offset = bytes.indexOf(OPENING, offset + 1)) >= 0)
    if (decodeRecord(bytes, offset, position + offset) !== null) return true;
  return false;
}

const corrupt = ({ segment }: LogPiece, { position, n }: LogHead) =>
  new LogCorrupt(
    `${segment.path} is corrupt at byte ${position - segment.start}, after record ${n}: no valid record begins there, and the log goes on after it. ${RESTORE}`,
  );

const missing = (folder: string, from: number, to: number) =>
  new LogCorrupt(`The log in ${folder} has no bytes ${from} to ${to}, which the database knows of. ${RESTORE}`);
