import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { isMediaId, MEDIA_HOLDER, mediaPath } from '#store';
import { type BlobReader, BlobUnreachable, type BlobWriter, type ByteRange, FileTooLarge } from './blob.ts';

/** The files of one store, for example a folder: `<folder>/ab/<id>`. A file appears only when it is complete. */
export interface BlobFiles {
  /** The name of the store. Gateways that share a folder or a bucket have the same name for it. */
  readonly holder: string;
  create(id: string, bytesMax: number): Promise<OpenBlobFile>;
  read(id: string, range: ByteRange): Promise<BlobReader>;
  /** Like `read`, but as a Node stream. */
  stream(id: string, range: ByteRange): Promise<Readable>;
  remove(id: string): Promise<void>;
  removePart(path: string): Promise<void>;
  /** Free bytes on the disk. */
  free(): Promise<number>;
  /** Files (`ids`) and unfinished files (`parts`) that were last changed at or before `time`, in epoch milliseconds. */
  olderThan(time: number): Promise<{
    readonly ids: readonly string[];
    readonly parts: readonly { readonly id: string; readonly path: string }[];
  }>;
}

export interface OpenBlobFile extends BlobWriter {
  /** Completes the file. It is on disk under its name when this resolves. */
  finish(): Promise<{ readonly sha256: string; readonly crc32: number }>;
  drop(): Promise<void>;
}

const PART = '.part';
/** Bytes per read. One chunk is read ahead for each client. */
const READ_BYTES = 256 * 1024;

export async function openBlobFiles(folder: string): Promise<BlobFiles> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const holder = await holderOf(folder);
  const pathOf = (id: string) => join(folder, mediaPath(id));
  return {
    holder,
    create: async (id, bytesMax) => {
      const path = pathOf(id);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return createFile(path, bytesMax);
    },
    read: async (id, range) => readChunks(await openToRead(pathOf(id)), range),
    stream: async (id, { start, end }) =>
      (await openToRead(pathOf(id))).createReadStream({ start, end, highWaterMark: READ_BYTES }),
    remove: (id) => rm(pathOf(id), { force: true }),
    removePart: (path) => rm(path, { force: true }),
    async free() {
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize;
    },
    async olderThan(time) {
      const ids: string[] = [];
      const parts: { id: string; path: string }[] = [];
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const path = join(entry.parentPath, entry.name);
        const isPart = entry.name.endsWith(PART);
        if (!isPart && !isMediaId(entry.name)) continue;
        const changed = await stat(path).catch(() => null);
        if (changed === null || changed.mtimeMs > time) continue;
        if (isPart) parts.push({ id: entry.name.slice(0, -PART.length), path });
        else ids.push(entry.name);
      }
      return { ids, parts };
    },
  };
}

async function openToRead(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (cause) {
    throw new BlobUnreachable('the file cannot be read', { cause });
  }
}

/**
 * Reads one chunk ahead, alternating between two buffers. A stream would allocate memory for each chunk and wait for
 * the disk between chunks.
 */
function readChunks(handle: FileHandle, range: ByteRange): BlobReader {
  let begun = false;
  return {
    [Symbol.asyncIterator]() {
      begun = true;
      return chunksOf(handle, range);
    },
    destroy() {
      if (!begun) close(handle);
    },
  };
}

const close = (handle: FileHandle): void => void handle.close().catch(() => {});

async function* chunksOf(handle: FileHandle, { start, end }: ByteRange): AsyncGenerator<Uint8Array, void, undefined> {
  const buffers = [Buffer.allocUnsafeSlow(READ_BYTES), Buffer.allocUnsafeSlow(READ_BYTES)] as const;
  let at = start;
  const next = (turn: number) => handle.read(buffers[turn & 1]!, 0, Math.min(READ_BYTES, end + 1 - at), at);
  let reading = at <= end ? next(0) : null;
  try {
    for (let turn = 0; reading !== null; turn += 1) {
      const { bytesRead, buffer } = await reading;
      if (bytesRead === 0) return;
      at += bytesRead;
      reading = at <= end ? next(turn + 1) : null;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await reading?.catch(() => {});
    close(handle);
  }
}

async function createFile(path: string, bytesMax: number): Promise<OpenBlobFile> {
  const part = path + PART;
  const handle = await open(part, 'wx', 0o600);
  const hash = createHash('sha256');
  let check = 0;
  const drop = async () => {
    await handle.close().catch(() => {});
    await rm(part, { force: true });
  };
  const file: OpenBlobFile & { bytes: number } = {
    bytes: 0,
    async write(chunk) {
      file.bytes += chunk.byteLength;
      if (file.bytes > bytesMax) throw new FileTooLarge(`it is larger than ${bytesMax} bytes`);
      hash.update(chunk);
      check = crc32(chunk, check);
      await handle.appendFile(chunk);
    },
    async finish() {
      await handle.sync();
      await handle.close();
      await rename(part, path);
      await syncDirectory(dirname(path));
      return { sha256: hash.digest('hex'), crc32: check };
    },
    drop,
  };
  return file;
}

/** A rename is on disk only after its folder is flushed. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The name of the folder's store. The first gateway that uses the folder writes it. */
async function holderOf(folder: string): Promise<string> {
  const path = join(folder, MEDIA_HOLDER);
  try {
    await writeFile(path, randomUUID(), { flag: 'wx', mode: 0o600, flush: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  // Another gateway may be writing it at this moment.
  for (let tries = 0; tries < 50; tries += 1) {
    const name = await readFile(path, 'utf8');
    if (name.length === randomUUID().length) return name;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`${path} does not hold the name of its folder: remove it if the folder has no files`);
}
