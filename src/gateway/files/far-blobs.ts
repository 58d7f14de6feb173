import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Readable } from 'node:stream';
import { loadStatements, type Database } from '#store';
import { FILE_HEADER, type Peers } from '#network';
import { type Blob, BlobUnreachable, type ByteRange } from './blob.ts';
import type { BlobFiles } from './blob-files.ts';

export interface FarBlobs {
  /** Rejects with BlobUnreachable. */
  read(blob: Blob, range: ByteRange): Promise<Readable>;
}

const SQL = loadStatements(import.meta.url, './sql/blobs.sql', ['putBlobHolder', 'findBlobHolder']);

/** Publishes the address where other gateways can fetch this gateway's files. */
export const tellHolder = (database: Pick<Database, 'query'>, holder: string, url: string) =>
  database.query(SQL.putBlobHolder, [holder, url]);

export function createFarBlobs(database: Pick<Database, 'query'>, peers: Pick<Peers, 'session'>): FarBlobs {
  return {
    async read({ id, holder }, { start, end }) {
      const [row] = await database.query(SQL.findBlobHolder, [holder]);
      if (!row) throw new BlobUnreachable(`the gateway that has the file ${id} is not known`);
      return ask(peers, { id: holder, url: row['url'] as string }, id, `${start}-${end}`);
    },
  };
}

/** Timeout until the response of another gateway begins. */
const HEAD_MS = 10_000;

function ask(
  peers: Pick<Peers, 'session'>,
  node: Parameters<Peers['session']>[0],
  id: string,
  range: string,
): Promise<Readable> {
  const { promise, resolve, reject } = Promise.withResolvers<Readable>();
  const failed = (cause?: unknown) =>
    reject(new BlobUnreachable(`the gateway that has the file ${id} did not send it`, { cause }));
  try {
    const stream = peers.session(node).request({ ':path': '/', [FILE_HEADER]: `${id} ${range}` }, { endStream: true });
    stream.setTimeout(HEAD_MS, () => stream.close(constants.NGHTTP2_CANCEL));
    stream.once('error', failed);
    stream.once('close', failed);
    stream.once('response', (headers: IncomingHttpHeaders & { ':status'?: number }) => {
      if (headers[':status'] !== 200) return stream.close(constants.NGHTTP2_CANCEL);
      // No timeout from here on. A slow client causes backpressure on this stream, and the route limits how long a
      // client may stall.
      stream.setTimeout(0);
      resolve(stream);
    });
  } catch (error) {
    failed(error);
  }
  return promise;
}

const ASKED = /^([0-9a-f]{32}) (\d{1,15})-(\d{1,15})$/;

/** Serves a file to another gateway, which requested it with FILE_HEADER. Takes it from the first store that has it. */
export async function giveFile(
  stores: readonly Pick<BlobFiles, 'stream'>[],
  stream: ServerHttp2Stream,
  request: string,
): Promise<void> {
  stream.on('error', () => {});
  const [, id, start, end] = ASKED.exec(request) ?? [];
  try {
    if (id === undefined) throw new BlobUnreachable('the gateway asks for no file');
    const file = await streamFrom(stores, id, { start: Number(start), end: Number(end) });
    if (stream.destroyed) return void file.destroy();
    stream.respond({ ':status': 200 });
    stream.once('close', () => file.destroy());
    file.once('error', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
    file.pipe(stream);
  } catch {
    if (!stream.destroyed) stream.respond({ ':status': 404 }, { endStream: true });
  }
}

/** Rejects with the error of the last store. */
async function streamFrom(
  [store, ...more]: readonly Pick<BlobFiles, 'stream'>[],
  id: string,
  range: ByteRange,
): Promise<Readable> {
  if (store === undefined) throw new BlobUnreachable(`the file ${id} is not here`);
  if (more.length === 0) return store.stream(id, range);
  return store.stream(id, range).catch(() => streamFrom(more, id, range));
}
