import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { BUCKET_HOLDER, MEDIA_FOLDER, MEDIA_HOLDER, mediaPath } from '../media-folder.ts';
import type { ArchiveEntry } from './archive.ts';
import { fileEntry } from './copy-embedded.ts';
import type { MissingMedia } from './manifest.ts';

/** The files of images and videos for a backup. */
interface MediaCopy {
  /** Files that the tables name but the backup lacks. Complete after `entries` has ended. */
  readonly missing: readonly MissingMedia[];
  entries(): AsyncGenerator<ArchiveEntry>;
}

/** The files that the tables name, in the snapshot of the backup. */
export interface MediaRows {
  readonly files: readonly StoredFile[];
  /** The addresses of stores, where other gateways fetch their files. */
  readonly holders: readonly { readonly id: string; readonly url: string }[];
}

interface StoredFile {
  readonly id: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly holder: string;
}

/** The queries for `MediaRows`, for both engines. */
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
 * Finds the files that the tables name, in the data directory of one gateway. Each file is read twice, in parts: first
 * to compare it with the tables, then to copy it. A file that differs from the tables is left out, so that it does not
 * prevent the backup of the books.
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
      // This file has the name of the store, which the rows refer to.
      if (own !== null) yield fileEntry(HOLDER, join(dataDir, HOLDER));
      for (const file of whole) {
        const path = join(dataDir, pathOf(file.id));
        if (existsSync(path)) yield fileEntry(pathOf(file.id), path);
        // The file has expired meanwhile.
        else left.push(file);
      }
    },
  };
}

/** The path, in the data directory, of the file with the store's name. */
const HOLDER = `${MEDIA_FOLDER}/${MEDIA_HOLDER}`;
const pathOf = (id: string): string => `${MEDIA_FOLDER}/${mediaPath(id)}`;

/** The name of the store in a data directory; null without a store. */
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
      // A bucket may have an address too: that of a gateway that older gateways asked for its files.
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
