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
