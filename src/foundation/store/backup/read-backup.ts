import { existsSync, readdirSync } from 'node:fs';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LOG_FOLDER } from '../log/segments.ts';
import { isMediaFile, giveToOwner, makeFolderIn } from '../owner.ts';
import { BackupError, explained, readArchive, type EntrySink } from './archive.ts';
import { holderIn } from './copy-files.ts';
import { refuseTables, restorePostgres } from './dump-postgres.ts';
import { syncFolder, type BackupPlace } from './make-backup.ts';
import {
  checkManifest,
  DATABASE,
  DUMP,
  isName,
  isTail,
  KEPT_FILES,
  refuseNewer,
  tailSink,
  type Manifest,
} from './manifest.ts';

/** The folder in the data directory in which a backup is unpacked and audited before its files are moved into place. */
const RESTORING = 'restoring';

type RestorePlace = Omit<BackupPlace, 'media'> & {
  /** The identity of a seed of before, if it is accepted too. */
  readonly secondIdentity?: string | null;
};

/** A restored backup. The files of an embedded database are moved into place only by `finish`. */
interface Restored {
  readonly manifest: Manifest;
  readonly dataDir: string;
  /** Moves the files of an embedded database into place. */
  finish(): Promise<void>;
}

/** Reads a backup to its end and compares it with its manifest. Writes nothing. Rejects with BackupError. */
export async function checkBackup(file: string, version: string): Promise<Manifest> {
  return unpack(file, version, () => null);
}

/**
 * Restores a backup into an empty data directory, or into an empty PostgreSQL database and a data directory, whose
 * existing files stay. `filesOnly` does not touch the database. Rejects with BackupError and changes nothing if the
 * place is not empty, the file is damaged, or the backup is of another engine or identity.
 */
export function restoreBackup(place: RestorePlace, file: string): Promise<Restored> {
  return explained(`${file} cannot be restored`, () => putBack(place, file));
}

async function putBack(place: RestorePlace, file: string): Promise<Restored> {
  const { dataDir, databaseUrl, filesOnly = false, version } = place;
  if (!filesOnly) await (databaseUrl === null ? refuseFiles(dataDir) : refuseTables(databaseUrl));
  const folder = join(dataDir, RESTORING);
  await rm(folder, { recursive: true, force: true });
  makeFolderIn(dataDir, join(folder, LOG_FOLDER));
  try {
    const manifest = await unpack(file, version, (name) => openFile(folder, name));
    await refuseOther(place, manifest, file);
    if (manifest.engine === 'embedded') return { manifest, dataDir: folder, finish: () => moveUp(folder, dataDir) };
    // Files come first. A gateway that starts with the database only would create a new identity.
    const placed = await placeFiles(folder, dataDir, manifest);
    try {
      if (!filesOnly) await restorePostgres(databaseUrl!, join(folder, DUMP), place.env);
    } catch (error) {
      for (const path of placed) await rm(path);
      throw error;
    }
    await rm(folder, { recursive: true });
    return { manifest, dataDir, finish: async () => {} };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** Moves the files that the data directory lacks into it. Resolves with their paths. */
async function placeFiles(folder: string, dataDir: string, { files }: Manifest): Promise<readonly string[]> {
  const names = files.map(({ name }) => name).filter((name) => isKept(name) || isMediaFile(name));
  const missing = names.filter((name) => !existsSync(join(dataDir, name)));
  const folders = new Set(missing.map((name) => dirname(join(dataDir, name))));
  for (const path of folders) makeFolderIn(dataDir, path);
  for (const name of missing) await rename(join(folder, name), join(dataDir, name));
  for (const path of new Set([...folders].flatMap((each) => [each, dirname(each)]))) await syncFolder(path);
  return missing.map((name) => join(dataDir, name));
}

const isKept = (name: string): boolean => (KEPT_FILES as readonly string[]).includes(name);

async function unpack(
  file: string,
  version: string,
  sinkOf: (name: string) => Promise<EntrySink> | null,
): Promise<Manifest> {
  const tail = new Map<string, string>();
  const files = await readArchive(file, (name, bytes) => {
    if (!isName(name))
      throw new BackupError(`${file} is not a backup of tollgate: it has a file ${JSON.stringify(name)}`);
    return isTail(name) ? tailSink(tail, name, bytes) : sinkOf(name);
  });
  const manifest = checkManifest(file, tail, files);
  refuseNewer(file, manifest, version);
  return manifest;
}

async function openFile(folder: string, name: string): Promise<EntrySink> {
  const path = join(folder, name);
  makeFolderIn(folder, dirname(path));
  const handle = await open(path, 'wx', 0o600);
  giveToOwner(handle.fd, dirname(path));
  return {
    write: (part) => handle.writeFile(part),
    async end() {
      await handle.sync();
      await handle.close();
    },
  };
}

/**
 * Names that an empty data directory may have: the folder of an interrupted restore, and a folder that new file systems
 * have.
 */
const EMPTY: ReadonlySet<string> = new Set([RESTORING, 'lost+found']);

function refuseFiles(dataDir: string): void {
  const names = existsSync(dataDir) ? readdirSync(dataDir).filter((name) => !EMPTY.has(name)) : [];
  if (names.length === 0) return;
  throw new BackupError(
    `The data directory ${dataDir} is not empty: it has ${names.slice(0, 3).join(', ')}. A backup is restored into an empty one.\n` +
      `Name another (--data), or move what is there away.`,
  );
}

async function refuseOther(
  { databaseUrl, dataDir, identity, secondIdentity, filesOnly = false }: RestorePlace,
  manifest: Manifest,
  file: string,
): Promise<void> {
  if (filesOnly && manifest.engine === 'embedded')
    throw new BackupError(
      `${file} is of a gateway with the embedded database, which is one of its files: leave --files-only out`,
    );
  if (!filesOnly && (manifest.engine === 'postgres') !== (databaseUrl !== null))
    throw new BackupError(
      manifest.engine === 'postgres'
        ? `${file} is of a gateway on PostgreSQL: name an empty database in DATABASE_URL`
        : `${file} is of a gateway with the embedded database, and cannot become books of PostgreSQL: leave DATABASE_URL and database.url out`,
    );
  if (!filesOnly && databaseUrl !== null && manifest.files.every(({ name }) => name !== DUMP))
    throw new BackupError(`${file} has no database: it was made with --files-only, and is restored with --files-only.`);
  const [there, stored] = [holderIn(dataDir), holderIn(join(dataDir, RESTORING))];
  if (there !== null && stored !== null && there !== stored)
    throw new BackupError(
      `${dataDir} has files of images and videos of another gateway than ${file}. Name another data directory (--data)`,
    );
  if (identity !== null && manifest.identity !== null && ![identity, secondIdentity].includes(manifest.identity))
    throw new BackupError(
      `${file} is of a gateway with another identity than server.identity_seed (TOLLGATE_IDENTITY_SEED) gives.\nUse the seed of that gateway: its receipts and stored secrets belong to it. If you have replaced it since, set it as TOLLGATE_SECOND_IDENTITY_SEED beside the present one.`,
    );
  const hasIdentity = manifest.files.some(({ name }) => name === KEPT_FILES[0]);
  // Without the identity file, the first start would create a new identity.
  if (identity === null && !hasIdentity && !existsSync(join(dataDir, KEPT_FILES[0])))
    throw new BackupError(
      `${file} has no ${KEPT_FILES[0]}: its gateway had TOLLGATE_IDENTITY_SEED (server.identity_seed)${manifest.identity === null ? `, or a data directory with ${KEPT_FILES[0]} that was not backed up` : ''}.\nSet the seed here, too: receipts and stored secrets belong to it.`,
    );
  const [own, its] = [join(dataDir, KEPT_FILES[0]), join(dataDir, RESTORING, KEPT_FILES[0])];
  if (identity === null && existsSync(own) && existsSync(its) && !(await readFile(own)).equals(await readFile(its)))
    throw new BackupError(`${own} is another identity than the one in ${file}. Name another data directory (--data)`);
}

/**
 * Moves the tables first. If the move is interrupted, a start refuses tables without their log. A log without its
 * tables would be taken for a new database.
 */
async function moveUp(folder: string, dataDir: string): Promise<void> {
  const names = readdirSync(folder);
  for (const name of [DATABASE, ...names.filter((each) => each !== DATABASE)])
    await rename(join(folder, name), join(dataDir, name));
  await rm(folder, { recursive: true });
  await syncFolder(dataDir);
}
