import { createHash } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { MEDIA_FOLDER, MEDIA_HOLDER, mediaPath } from '../media-folder.ts';
import type { ArchiveEntry } from './archive.ts';
import { fileEntry } from './copy-embedded.ts';

/** The files of images and videos that go with the tables of a backup. */
interface MediaCopy {
  /** Files that the tables name and the folder does not have whole: in a bucket, or expired. Known after `entries`. */
  readonly left: number;
  entries(): AsyncGenerator<ArchiveEntry>;
}

interface StoredFile {
  readonly id: string;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Finds the files that the copied tables name. Each is read twice, in parts: a file that is not what the tables say is
 * left out, and does not keep the books from being backed up.
 */
export async function copyMedia(dataDir: string, draft: string): Promise<MediaCopy> {
  const whole: StoredFile[] = [];
  const stored = storedFiles(draft);
  for (const file of stored) if (await isWhole(join(dataDir, pathOf(file.id)), file)) whole.push(file);
  let added = 0;
  return {
    get left() {
      return stored.length - added;
    },
    async *entries() {
      // Rows name their folder by what is in this file.
      const holder = join(dataDir, HOLDER);
      if (existsSync(holder)) yield fileEntry(HOLDER, holder);
      for (const { id } of whole) {
        const path = join(dataDir, pathOf(id));
        // It may have expired since.
        if (!existsSync(path)) continue;
        yield fileEntry(pathOf(id), path);
        added += 1;
      }
    },
  };
}

const HOLDER = `${MEDIA_FOLDER}/${MEDIA_HOLDER}`;
const pathOf = (id: string): string => `${MEDIA_FOLDER}/${mediaPath(id)}`;

function storedFiles(draft: string): readonly StoredFile[] {
  const tables = new DatabaseSync(draft, { readOnly: true });
  try {
    const rows = tables.prepare("SELECT id, bytes, sha256 FROM blobs WHERE state = 'stored' ORDER BY id").all();
    return rows as unknown as readonly StoredFile[];
  } finally {
    tables.close();
  }
}

async function isWhole(path: string, { bytes, sha256 }: StoredFile): Promise<boolean> {
  if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return false;
  const digest = createHash('sha256');
  for await (const part of createReadStream(path) as AsyncIterable<Buffer>) digest.update(part);
  return digest.digest('hex') === sha256;
}
