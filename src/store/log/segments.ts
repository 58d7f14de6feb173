import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';

/** One file of the log. Its name is the position at which it begins. It ends where the next file begins. */
export interface Segment {
  readonly start: number;
  readonly path: string;
  readonly isCompressed: boolean;
}

/** The folder of the log in a data directory. */
export const LOG_FOLDER = 'ledger';
/** A segment of at least this size is closed, and the next record begins a new segment. */
export const SEGMENT_BYTES = 64 * 1024 * 1024;

const DIGITS = 16;
const NAME = /^(\d{16})\.log(\.zst)?$/;

export const segmentPath = (folder: string, start: number): string =>
  join(folder, `${String(start).padStart(DIGITS, '0')}.log`);
export const compressedPath = (path: string): string => `${path}.zst`;

/**
 * The segments of a folder, in order. If a segment exists twice because its compression was interrupted, the
 * uncompressed file is used.
 */
export function listSegments(folder: string): readonly Segment[] {
  const byStart = new Map<number, Segment>();
  for (const name of readdirSync(folder)) {
    const [, digits, compressed] = NAME.exec(name) ?? [];
    if (digits === undefined) continue;
    const start = Number(digits);
    if (compressed !== undefined && byStart.has(start)) continue;
    byStart.set(start, { start, path: join(folder, name), isCompressed: compressed !== undefined });
  }
  return [...byStart.values()].sort((a, b) => a.start - b.start);
}

/** True if the folder has a file of the log. */
export const hasLog = (folder: string): boolean => existsSync(folder) && listSegments(folder).length > 0;

/** All bytes of a segment, uncompressed. */
export function readSegment({ path, isCompressed }: Segment): Buffer {
  const bytes = readFileSync(path);
  return isCompressed ? zstdDecompressSync(bytes) : bytes;
}

export const sizeOf = (segment: Segment): number =>
  segment.isCompressed ? readSegment(segment).byteLength : statSync(segment.path).size;
