import { existsSync, readdirSync, createReadStream } from 'node:fs';
import { join } from 'node:path';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { giveToOwner } from '../owner.ts';
import { compressFrames } from './frames.ts';

/** One file of the log. Its name is the position at which it begins. It ends where the next file begins. */
export interface Segment {
  readonly start: number;
  readonly path: string;
  readonly isCompressed: boolean;
}

export const LOG_FOLDER = 'ledger';
/** A segment of at least this size is closed, and the next record begins a new segment. */
export const SEGMENT_BYTES = 64 * 1024 * 1024;

const DIGITS = 16;
const NAME = /^(\d{16})\.log(\.zst)?$/;

export const segmentPath = (folder: string, start: number): string =>
  join(folder, `${String(start).padStart(DIGITS, '0')}.log`);
export const compressedPath = (path: string): string => `${path}.zst`;
/** A compressed copy that is being written. */
const draftPath = (path: string): string => `${compressedPath(path)}.new`;

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

/** Bytes per frame of a compressed segment. A complete segment has 64 MiB. */
const FRAME_BYTES = 1024 * 1024;

/**
 * Compresses the closed segments that end at or before `position`, one after the other. An uncompressed segment is
 * removed after its compressed copy is on disk. Rejects if a copy cannot be written; nothing is lost then.
 */
export async function compressClosed(folder: string, position: number): Promise<void> {
  const segments = listSegments(folder);
  for (const [index, { start, path, isCompressed }] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined || next.start > position) return;
    if (isCompressed) continue;
    const draft = draftPath(path);
    const copy = await open(draft, 'w', 0o600);
    giveToOwner(copy.fd, folder);
    // Bytes after the beginning of the next segment are left out. They were never acknowledged. The stream begins with
    // the pipeline, which takes its errors: nobody would before.
    const plain = createReadStream(path, { end: next.start - start - 1, highWaterMark: FRAME_BYTES });
    await pipeline(plain, compressFrames, copy.createWriteStream({ flush: true }));
    // An archive may have removed the segment meanwhile, see removeBefore.
    if (!existsSync(path)) {
      await rm(draft, { force: true });
      continue;
    }
    await rename(draft, compressedPath(path));
    const directory = await open(folder, 'r');
    await directory.sync().finally(() => directory.close());
    await rm(path, { force: true });
  }
}

/** Removes the segments that end at or before `position`, the oldest first, so that what is left has no gap. */
export async function removeBefore(folder: string, position: number): Promise<void> {
  const segments = listSegments(folder);
  for (const [index, { path }] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined || next.start > position) return;
    const plain = path.replace(/\.zst$/, '');
    // Its compression may have been interrupted, and then there are two files, or three.
    for (const one of [plain, draftPath(plain), compressedPath(plain)]) await rm(one, { force: true });
  }
}
