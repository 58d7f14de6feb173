import { open, readFile, rename, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { zstdCompress } from 'node:zlib';
import { compressedPath, listSegments } from './segments.ts';

const compress = promisify(zstdCompress);

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
    // What is behind the beginning of the next one was never answered as done.
    const bytes = (await readFile(path)).subarray(0, next.start - start);
    const draft = `${compressedPath(path)}.new`;
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(await compress(bytes));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, compressedPath(path));
    const directory = await open(folder, 'r');
    await directory.sync().finally(() => directory.close());
    await rm(path);
  }
}
