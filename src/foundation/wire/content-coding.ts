import { pipeline, type Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createInflate,
  createInflateRaw,
  createGunzip,
  createZstdDecompress,
} from 'node:zlib';

/** Bytes that a decoder makes at once, so that nothing of a body waits in memory beyond what its reader asked for. */
const PIECE_BYTES = 64 * 1024;
const PIECES = { chunkSize: PIECE_BYTES };

/** The largest window of a decoder for zstd is 8 MiB (RFC 9659). Without it a small body could ask for 128 MiB. */
const ZSTD = { ...PIECES, params: { [constants.ZSTD_d_windowLogMax]: 23 } };

const createDecoder: Readonly<Record<string, (first: number) => Transform>> = {
  gzip: () => createGunzip(PIECES),
  'x-gzip': () => createGunzip(PIECES),
  // `deflate` means the zlib format (RFC 9110, 8.4.1.2), but some send it without the head of zlib, which says 8 here.
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate(PIECES) : createInflateRaw(PIECES)),
  br: () => createBrotliDecompress(PIECES),
  zstd: () => createZstdDecompress(ZSTD),
};

/** The one coding of a body by its `content-encoding`; null for none. A coding that is not decoded stays as it is. */
function codingOf(header: string | string[] | undefined): string | null {
  const coding = String(header ?? '')
    .trim()
    .toLowerCase();
  return coding === '' || coding === 'identity' ? null : coding;
}

/** A body that is not what its coding says. */
export class CodingFault extends Error {
  override readonly name = 'CodingFault';
}

/**
 * The content of a body in pieces, which are made as they are read, so that a small body of much content takes little
 * memory. Rejects with CodingFault, or with the error of `body`. `coding`: one for which `isKnown`.
 */
async function* decoded(body: AsyncIterable<Uint8Array>, coding: string): AsyncGenerator<Buffer, void, undefined> {
  const chunks = body[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done) return;
  let broken: unknown = null;
  const source = chunksOf(first.value, chunks, (error) => (broken = error));
  const decoder = createDecoder[coding]!(first.value[0] ?? 0);
  try {
    for await (const piece of pipeline(source, decoder, () => {})) yield piece as Buffer;
  } catch (error) {
    throw broken instanceof Error ? broken : new CodingFault(`not valid ${coding}`, { cause: error });
  }
}

/** A body whose first chunk was read. `broke`: gets the error of the body itself. */
async function* chunksOf(
  first: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
  broke: (error: unknown) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield first;
  try {
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } catch (error) {
    broke(error);
    throw error;
  }
}

/** Codings of the content of a body (RFC 9110, 8.4), such as gzip. */
export const contentCoding = {
  /** Those that are decoded, as `accept-encoding` names them. */
  known: 'gzip, deflate, br, zstd',
  isKnown: (coding: string): boolean => Object.hasOwn(createDecoder, coding),
  /**
   * A header of each request to a provider. HTTP lets a server choose any coding if the request names none, and a
   * coding costs time on both sides. A reply that is coded nevertheless is decoded.
   */
  none: { 'accept-encoding': 'identity' },
  codingOf,
  decoded,
} as const;
