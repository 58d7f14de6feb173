import { hash } from 'node:crypto';
import { isMediaFile } from '../owner.ts';
import { fileOfMigration, loadMigrations } from '../migrations.ts';
import { BackupError, damaged, type ArchivedFile } from './archive.ts';

/**
 * The list of a backup's files. It is the second-last file, and the last file has its digest. An incomplete backup has
 * neither.
 */
export interface Manifest {
  readonly format: typeof FORMAT;
  readonly tollgate: string;
  /** RFC 3339: the time of the backup. */
  readonly at: string;
  readonly engine: 'embedded' | 'postgres';
  /** Migrations of the database, in order. */
  readonly migrations: readonly string[];
  /** The last record of the ledger's log in the backup; null on PostgreSQL. */
  readonly record: { readonly n: number; readonly hash: string } | null;
  /** Id of the key that signs receipts. It identifies the gateway. null if it was not known. */
  readonly identity: string | null;
  /**
   * Files of images and videos that the tables name but the backup lacks. null if such files were not included at all.
   */
  readonly mediaMissing: readonly MissingMedia[] | null;
  readonly files: readonly ArchivedFile[];
}

export interface MissingMedia {
  /**
   * `bucket`: in an S3 store. `gateway`: on the disk of another gateway. `here`: in the copied folder, but expired
   * meanwhile or damaged.
   */
  readonly where: 'bucket' | 'gateway' | 'here';
  readonly holder: string;
  /** The address where other gateways fetch these files; null if it is not known. */
  readonly url: string | null;
  readonly files: number;
  readonly bytes: number;
}

export const FORMAT = 1;
export const MANIFEST = 'manifest.json';
export const DIGEST = 'manifest.sha256';
export const DATABASE = 'tollgate.db';
export const DUMP = 'database.dump';
/** Other files of the data directory that belong in a backup. */
export const KEPT_FILES = ['identity.json', 'admin-key'] as const;

const NAMES = /^(?:tollgate\.db|database\.dump|identity\.json|admin-key|ledger\/\d{16}\.log(?:\.zst)?)$/;
/** The manifest of about 2,500,000 files. It must fit into one text, which V8 limits to 512 MiB. */
const TAIL_BYTES_MAX = 480 * 1024 * 1024;

/** True for a file name that a backup may have. Files with other names are never written. */
export const isName = (name: string): boolean => NAMES.test(name) || isMediaFile(name) || isTail(name);
export const isTail = (name: string): boolean => name === MANIFEST || name === DIGEST;

/** Writes the last two files of a backup. Throws BackupError if a restore could not read them. */
export function sealManifest(manifest: Manifest): { readonly text: string; readonly digest: string } {
  const text = textOf(manifest);
  if (text === null || Buffer.byteLength(text) > TAIL_BYTES_MAX)
    throw new BackupError(
      `${manifest.files.length} files are more than one backup can have. Leave out the images and videos (--no-media), and copy their folder apart from it.`,
    );
  return { text, digest: `${hash('sha256', text)}  ${MANIFEST}\n` };
}

/** null if V8 cannot hold the text. */
function textOf(manifest: Manifest): string | null {
  try {
    return `${JSON.stringify(manifest, null, 2)}\n`;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Checks the manifest of a backup that was read to its end. Throws BackupError if a file differs from the manifest. */
export function checkManifest(
  path: string,
  tail: ReadonlyMap<string, string>,
  archived: readonly ArchivedFile[],
): Manifest {
  const [text, digest] = [tail.get(MANIFEST), tail.get(DIGEST)];
  if (text === undefined || digest === undefined) throw damaged(path, 'its list of files is missing');
  if (digest !== `${hash('sha256', text)}  ${MANIFEST}\n`) throw damaged(path, `${MANIFEST} was changed`);
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== FORMAT)
    throw new BackupError(
      `${path} was made by tollgate ${manifest.tollgate}, in a form that this version does not know. Use that version.`,
    );
  const files = archived.filter(({ name }) => !isTail(name));
  // A backup may have hundreds of thousands of files.
  const byName = new Map(files.map((file) => [file.name, file]));
  const different = manifest.files.find(({ name, bytes, sha256 }) => {
    const file = byName.get(name);
    return file?.bytes !== bytes || file.sha256 !== sha256;
  });
  if (different) throw damaged(path, `${different.name} was changed`);
  if (files.length !== manifest.files.length) throw damaged(path, 'it has a file that its list does not name');
  return manifest;
}

/** Throws BackupError if the backup was made by a newer tollgate. */
export function refuseNewer(path: string, { tollgate, migrations }: Manifest, version: string): void {
  const known = new Set(loadMigrations().map(({ name }) => name));
  const unknown = migrations.filter((name) => !known.has(fileOfMigration(name)));
  if (unknown.length === 0) return;
  throw new BackupError(
    `${path} was made by tollgate ${tollgate}, whose database has ${unknown.join(', ')}. This is tollgate ${version}, which does not know that.\n` +
      `Restore it with tollgate ${tollgate} or newer.`,
  );
}

/** Keeps the content of the last two files in memory. */
export function tailSink(tail: Map<string, string>, name: string, bytes: number) {
  if (bytes > TAIL_BYTES_MAX) throw new BackupError(`${name} of the backup is too large`);
  const parts: Buffer[] = [];
  return {
    write: (part: Buffer) => void parts.push(part),
    end: () => void tail.set(name, Buffer.concat(parts).toString('utf8')),
  };
}
