import { closeSync, constants, existsSync, fchownSync, mkdirSync, openSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, resolve } from 'node:path';

/* The files in a data directory: who owns them, and where the files of images and videos stand. Users exist on every
   system except Windows. */

const ROOT = 0;

/**
 * As root, gives a new open file to the owner of its folder. So the gateway of that user can use the files of commands
 * that root runs. Takes a descriptor, because a path could meanwhile be a link that the owner of the folder made.
 */
export function giveToOwner(descriptor: number, folder: string): void {
  if (process.getuid?.() !== ROOT) return;
  const { uid, gid } = statSync(folder);
  if (uid === ROOT) return;
  try {
    fchownSync(descriptor, uid, gid);
  } catch {
    // In a container without the right to change owners, root keeps the file.
  }
}

/**
 * Makes a folder for this user alone, with the folders above it. Returns the outermost that was made; undefined if all
 * exist. One after the other, because in places where no folder can be made, such as /proc, Node tries for ever to make
 * them together.
 */
export function makeFolder(path: string): string | undefined {
  const folder = resolve(path);
  if (existsSync(folder)) return undefined;
  const above = makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return above ?? folder;
}

/**
 * Makes a folder in the data directory `place`, with those between and `place` itself. As root, gives each that it
 * makes below `place` to the owner of the folder above it.
 */
export function makeFolderIn(place: string, path: string): void {
  if (resolve(path) === resolve(place)) {
    makeFolder(place);
    return;
  }
  makeFolderIn(place, dirname(path));
  if (makeFolder(path) === undefined) return;
  // No link is followed, because the owner of the folder above could have put one in the place of the new folder.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECTORY);
  try {
    giveToOwner(descriptor, dirname(path));
  } finally {
    closeSync(descriptor);
  }
}

/** The fault and the remedy, if `error` says that a file may not be used by this user. null for any other error. */
export function deniedTo(error: unknown): string | null {
  const { code, path } = (error ?? {}) as NodeJS.ErrnoException;
  if ((code !== 'EACCES' && code !== 'EPERM') || path === undefined || process.getuid === undefined) return null;
  const me = nameOfThisUser();
  return (
    `${path} ${ownedBy(path)}and the user that runs this (${me}) may not use it.\n` +
    `Run this as the user of the gateway. If that is ${me}, give it the file: chown ${me} ${path}`
  );
}

function ownedBy(path: string): string {
  try {
    const { uid } = statSync(path);
    return `belongs to ${uid === ROOT ? 'root' : `user ${uid}`}, `;
  } catch {
    return 'cannot be reached, ';
  }
}

/** The name, or the number of a user without a name, as containers have. */
function nameOfThisUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}

/** The folder in the data directory for the files of images and videos. */
export const MEDIA_FOLDER = 'blobs';
/** A file in that folder. It contains the store's name, which the tables use. */
export const MEDIA_HOLDER = 'holder';

/** The prefix of names of stores that are buckets. All other stores are folders. */
export const BUCKET_HOLDER = 's3-';

const ID = /^[0-9a-f]{32}$/;
export const isMediaId = (id: string): boolean => ID.test(id);

/** The path of a file in its folder or bucket. Throws RangeError for an invalid id. */
export function mediaPath(id: string): string {
  if (!isMediaId(id)) throw new RangeError('The id of a file has 32 hex digits');
  return `${id.slice(0, 2)}/${id}`;
}

/** True if a path in the data directory (with slashes) is such a file, or the file with the name of the store. */
export function isMediaFile(path: string): boolean {
  const id = path.slice(path.lastIndexOf('/') + 1);
  return path === `${MEDIA_FOLDER}/${isMediaId(id) ? mediaPath(id) : MEDIA_HOLDER}`;
}
