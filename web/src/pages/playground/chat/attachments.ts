/** The most bytes of a message's pictures together. A chat request may have 10 MiB, and base64 adds a third. */
const BYTES_MAX = 6 * 1024 * 1024;
const PICTURES_MAX = 8;
const TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
export const PICTURE_TYPES = [...TYPES].join(',');

/** Reads files as data URLs and appends them to `before`. Rejects with Error that names the file which doesn't fit. */
export async function readPictures(files: Iterable<File>, before: readonly string[] = []): Promise<readonly string[]> {
  const urls = [...before];
  for (const file of files) {
    if (!TYPES.has(file.type)) throw new Error(`${file.name} is not a picture: choose PNG, JPEG, WebP or GIF files.`);
    if (urls.length >= PICTURES_MAX) throw new Error(`At most ${PICTURES_MAX} pictures go with a message.`);
    urls.push(await dataUrlOf(file));
    if (urls.reduce((sum, url) => sum + url.length * 0.75, 0) > BYTES_MAX)
      throw new Error(`${file.name} is too large: all pictures of a message together may have 6 MiB.`);
  }
  return urls;
}

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result as string));
    reader.addEventListener('error', () => reject(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(file);
  });
}
