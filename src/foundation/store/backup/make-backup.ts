import { existsSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type ArchiveEntry, BackupError, createArchive, explained, type ArchivedFile } from './archive.ts';
import { copyEmbedded, fileEntry, copyMedia, mediaRowsOf, type MediaRows } from './copy-files.ts';
import { dumpPostgres, type ProgramEnvironment } from './dump-postgres.ts';
import { DATABASE, DIGEST, DUMP, FORMAT, KEPT_FILES, MANIFEST, sealManifest, type Manifest } from './manifest.ts';

export interface BackupPlace {
  /** null: the embedded database of `dataDir`. */
  readonly databaseUrl: string | null;
  readonly dataDir: string;
  /** Id of the key that signs its receipts; null if it is not known. */
  readonly identity: string | null;
  readonly version: string;
  readonly env: ProgramEnvironment;
  /** Includes the files of images and videos that the data directory has. */
  readonly media: boolean;
  /** Leaves out the database: for the data directory of a gateway on PostgreSQL. Default false. */
  readonly filesOnly?: boolean;
}

interface Content extends Pick<Manifest, 'engine' | 'migrations' | 'record' | 'mediaMissing'> {
  entries(): AsyncIterable<ArchiveEntry> | Iterable<ArchiveEntry>;
}

/**
 * Writes a backup of the database and of the identity to a new file, while gateways continue. The file appears only
 * when it is complete. Rejects with BackupError.
 */
export function makeBackup(place: BackupPlace, file: string): Promise<Manifest> {
  return explained(`The backup ${file} cannot be made`, () => writeBackup(place, file));
}

async function writeBackup(place: BackupPlace, file: string): Promise<Manifest> {
  if (existsSync(file)) throw new BackupError(`${file} is there already: give the backup a new name`);
  await mkdir(dirname(file), { recursive: true });
  const part = `${file}.part`;
  await rm(part, { force: true });
  const now = new Date();
  // SQLite and pg_dump create files that others may read, so a private folder protects them.
  const drafts = `${file}.drafts`;
  await rm(drafts, { recursive: true, force: true });
  await mkdir(drafts, { mode: 0o700 });
  try {
    const content = await (place.databaseUrl === null
      ? contentOfEmbedded(place, join(drafts, DATABASE))
      : contentOfPostgres(place, place.databaseUrl, join(drafts, DUMP)));
    const archive = await createArchive(part, now.getTime());
    try {
      const files: ArchivedFile[] = [];
      for await (const entry of content.entries()) files.push(await archive.add(entry));
      for (const name of KEPT_FILES) {
        const path = join(place.dataDir, name);
        if (existsSync(path)) files.push(await archive.add(fileEntry(name, path)));
      }
      const { engine, migrations, record, mediaMissing } = content;
      const facts = { format: FORMAT, tollgate: place.version, at: now.toISOString() } as const;
      const manifest: Manifest = {
        ...facts,
        engine,
        migrations,
        record,
        identity: place.identity,
        mediaMissing,
        files,
      };
      const { text, digest } = sealManifest(manifest);
      await archive.add(textEntry(MANIFEST, text));
      await archive.add(textEntry(DIGEST, digest));
      await archive.finish();
      await rename(part, file);
      await syncFolder(dirname(file));
      return manifest;
    } finally {
      await archive.close();
      await rm(part, { force: true });
    }
  } finally {
    await rm(drafts, { recursive: true, force: true });
  }
}

async function contentOfEmbedded({ dataDir, media, filesOnly }: BackupPlace, draft: string): Promise<Content> {
  if (filesOnly)
    throw new BackupError(
      `The database of ${dataDir} is one of its files: leave --files-only out. It is for gateways on PostgreSQL.`,
    );
  if (!existsSync(join(dataDir, DATABASE)))
    throw new BackupError(`There is no database in ${dataDir}: run this on the machine that has the data directory`);
  const copy = await copyEmbedded(dataDir, draft);
  const facts = {
    engine: 'embedded',
    migrations: copy.migrations,
    record: { n: copy.head.n, hash: copy.head.hash },
  } as const;
  return withMedia(facts, () => copy.entries(), dataDir, media ? mediaRowsOf(draft) : null);
}

async function contentOfPostgres(place: BackupPlace, url: string, draft: string): Promise<Content> {
  const { env, dataDir, media, filesOnly } = place;
  const moment = await dumpPostgres(url, filesOnly ? null : draft, env);
  const facts = { engine: 'postgres', migrations: moment.migrations, record: null } as const;
  const entries = () => (filesOnly ? [] : [fileEntry(DUMP, draft)]);
  return withMedia(facts, entries, dataDir, media ? moment.media : null);
}

/** The content of a backup: the database, then the files that `rows` name in the data directory. */
async function withMedia(
  facts: Pick<Content, 'engine' | 'migrations' | 'record'>,
  entries: Content['entries'],
  dataDir: string,
  rows: MediaRows | null,
): Promise<Content> {
  const files = rows === null ? null : await copyMedia(dataDir, rows);
  return {
    ...facts,
    get mediaMissing() {
      return files?.missing ?? null;
    },
    async *entries() {
      yield* entries();
      if (files !== null) yield* files.entries();
    },
  };
}

const textEntry = (name: string, text: string): ArchiveEntry => {
  const bytes = Buffer.from(text);
  return { name, bytes: bytes.byteLength, content: [bytes] };
};

/** Flushes a folder, so that a new name in it survives a power cut. Windows has no call for this. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
