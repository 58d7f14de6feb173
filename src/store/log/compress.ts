import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { compressedPath, listSegments } from './segments.ts';

/** Bytes that are read at once. A whole segment has 64 MiB. */
const READ_BYTES = 1024 * 1024;

/**
 * Compresses the closed segments that end at `position` or before it, one after the other. A plain segment is removed
 * when its compressed copy is on disk. Rejects where it cannot be written; nothing is lost then.
 */
export async function compressClosed(folder: string, position: number): Promise<void> {
  const segments = listSegments(folder);
  for (const [index, { start, path, isCompressed }] of segments.entries()) {
    const next = segments[index + 1];
    if (next === undefined || next.start > position) return;
    if (isCompressed) continue;
    const draft = `${compressedPath(path)}.new`;
    // What is behind the beginning of the next one was never answered as done.
    const plain = createReadStream(path, { end: next.start - start - 1, highWaterMark: READ_BYTES });
    await pipeline(plain, createZstdCompress(), createWriteStream(draft, { mode: 0o600, flush: true }));
    await rename(draft, compressedPath(path));
    const directory = await open(folder, 'r');
    await directory.sync().finally(() => directory.close());
    await rm(path);
  }
}
