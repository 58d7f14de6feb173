import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { BUCKET_HOLDER, MEDIA_FOLDER, MEDIA_HOLDER, mediaPath } from '../media-folder.ts';
import type { ArchiveEntry } from './archive.ts';
import { fileEntry } from './copy-embedded.ts';
import type { MissingMedia } from './manifest.ts';

/** The files of images and videos that go with the tables of a backup. */
interface MediaCopy {
  /** Files that the tables name and the backup does not have. Known after `entries`. */
  readonly missing: readonly MissingMedia[];
  entries(): AsyncGenerator<ArchiveEntry>;
}

/** Files as the tables of a backup tell them, as of its moment. */
export interface MediaRows {
  readonly files: readonly StoredFile[];
  /** The addresses at which gateways ask for the files of a store. */
  readonly holders: readonly { readonly id: string; readonly url: string }[];
}

interface StoredFile {
  readonly id: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly holder: string;
}

/** The questions whose answers are `MediaRows`, for both databases. */
export const STORED_FILES =
  "SELECT id, CAST(bytes AS DOUBLE PRECISION) AS bytes, sha256, holder FROM blobs WHERE state = 'stored' ORDER BY id";
export const MEDIA_HOLDERS = 'SELECT id, url FROM blob_holders';

/** Reads the copied tables of an embedded database. */
export function mediaRowsOf(draft: string): MediaRows {
  const tables = new DatabaseSync(draft, { readOnly: true });
  try {
    return {
      files: tables.prepare(STORED_FILES).all() as unknown as MediaRows['files'],
      holders: tables.prepare(MEDIA_HOLDERS).all() as unknown as MediaRows['holders'],
    };
  } finally {
    tables.close();
  }
}

/**
 * Finds the files that the tables name in the data directory of one gateway. Each is read twice, in parts: a file that
 * is not what the tables say is left out, and does not keep the books from being backed up.
 */
export async function copyMedia(dataDir: string, { files, holders }: MediaRows): Promise<MediaCopy> {
  const own = holderIn(dataDir);
  const whole: StoredFile[] = [];
  const left: StoredFile[] = [];
  for (const file of files) {
    const isHere = await isWhole(join(dataDir, pathOf(file.id)), file);
    (isHere ? whole : left).push(file);
  }
  const urls = new Map(holders.map(({ id, url }) => [id, url]));
  return {
    get missing() {
      return missingOf(left, own, urls);
    },
    async *entries() {
      // Rows name their folder by what is in this file.
      if (own !== null) yield fileEntry(HOLDER, join(dataDir, HOLDER));
      for (const file of whole) {
        const path = join(dataDir, pathOf(file.id));
        if (existsSync(path)) yield fileEntry(pathOf(file.id), path);
        // It has expired since.
        else left.push(file);
      }
    },
  };
}

/** The file that names a folder of files, by its path in the data directory. */
const HOLDER = `${MEDIA_FOLDER}/${MEDIA_HOLDER}`;
const pathOf = (id: string): string => `${MEDIA_FOLDER}/${mediaPath(id)}`;

/** The name of the folder of files in a data directory; null where the folder is missing. */
export function holderIn(dataDir: string): string | null {
  const path = join(dataDir, HOLDER);
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

function missingOf(
  left: readonly StoredFile[],
  own: string | null,
  urls: ReadonlyMap<string, string>,
): readonly MissingMedia[] {
  return Map.groupBy(left, ({ holder }) => holder)
    .entries()
    .map(([holder, files]): MissingMedia => {
      const where = holder === own ? 'here' : holder.startsWith(BUCKET_HOLDER) ? 'bucket' : 'gateway';
      // A bucket has the address of a gateway that was asked for its files by older ones.
      const url = where === 'gateway' ? (urls.get(holder) ?? null) : null;
      return { where, holder, url, files: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
    })
    .toArray();
}

async function isWhole(path: string, { bytes, sha256 }: StoredFile): Promise<boolean> {
  if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return false;
  const digest = createHash('sha256');
  for await (const part of createReadStream(path) as AsyncIterable<Buffer>) digest.update(part);
  return digest.digest('hex') === sha256;
}
