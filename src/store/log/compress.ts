import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { giveToOwner } from '../owner.ts';
import { compressedPath, listSegments } from './segments.ts';

/** Bytes per read. A complete segment has 64 MiB. */
const READ_BYTES = 1024 * 1024;

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
    const draft = `${compressedPath(path)}.new`;
    const copy = await open(draft, 'w', 0o600);
    giveToOwner(copy.fd, folder);
    // Bytes after the beginning of the next segment are left out. They were never acknowledged. The stream begins with
    // the pipeline, which takes its errors: nobody would before.
    const plain = createReadStream(path, { end: next.start - start - 1, highWaterMark: READ_BYTES });
    await pipeline(plain, createZstdCompress(), copy.createWriteStream({ flush: true }));
    await rename(draft, compressedPath(path));
    const directory = await open(folder, 'r');
    await directory.sync().finally(() => directory.close());
    await rm(path);
  }
}
