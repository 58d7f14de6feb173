/** The folder of the data directory in which the files of images and videos lie. */
export const MEDIA_FOLDER = 'blobs';
/** The file in a folder of files that names it, as the tables do. */
export const MEDIA_HOLDER = 'holder';

/** Stores whose name begins so are buckets, the others folders. */
export const BUCKET_HOLDER = 's3-';

const ID = /^[0-9a-f]{32}$/;
export const isMediaId = (id: string): boolean => ID.test(id);

/** The place of a file in its folder or bucket. Throws RangeError for what is no id. */
export function mediaPath(id: string): string {
  if (!isMediaId(id)) throw new RangeError('The id of a file has 32 hex digits');
  return `${id.slice(0, 2)}/${id}`;
}

/** Whether a path of the data directory, with slashes, is one of these files or the one that names their folder. */
export function isMediaFile(path: string): boolean {
  const id = path.slice(path.lastIndexOf('/') + 1);
  return path === `${MEDIA_FOLDER}/${isMediaId(id) ? mediaPath(id) : MEDIA_HOLDER}`;
}
