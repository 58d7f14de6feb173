import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type ClientSink, GatewayError } from '#wire';
import { type Blob, BlobUnreachable, type Blobs, type Piece, pieceLength, rangeOf, writePieces } from '#tasks';
import { zipPieces } from '../files/zip.ts';

/** A body that is sent in whole or in part. */
interface Sent {
  readonly pieces: readonly Piece[];
  readonly type: string;
  readonly name: string;
  readonly etag: string;
}

const RETRY_S = 5;

/**
 * The body for files: an archive if several variants were asked for, even if only one of them came, else the file as it
 * is. `name`: name of the file, without its extension.
 */
export function bodyOf(files: readonly Blob[], name: string, several: boolean): Sent {
  const [first] = files;
  if (!several && first) return { pieces: [first], type: first.type, name: `${name}.mp4`, etag: `"${first.sha256}"` };
  const pieces = zipPieces(files.map((blob, at) => ({ name: `variant_${at}.mp4`, blob })));
  const etag = `"${hash('sha256', files.map(({ sha256 }) => sha256).join())}"`;
  return { pieces, type: 'application/zip', name: `${name}.zip`, etag };
}

/**
 * Sends a body, or the part of it that `Range` asks for. If `If-Range` names another body, the whole body is sent.
 * Throws GatewayError `service_unavailable` while a file cannot be read.
 */
export async function sendBody(
  blobs: Pick<Blobs, 'read'>,
  { pieces, type, name, etag }: Sent,
  headers: IncomingHttpHeaders,
  more: Readonly<Record<string, string>>,
  sink: ClientSink,
): Promise<void> {
  const length = pieces.reduce((sum, piece) => sum + pieceLength(piece), 0);
  const isSame = (headers['if-range'] ?? etag) === etag;
  const asked = isSame ? rangeOf(headers.range, length) : 'whole';
  const common = {
    ...more,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-transform',
    'content-security-policy': "default-src 'none'; sandbox",
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    etag,
  };
  if (asked === 'none') {
    sink.head(416, { ...common, 'content-range': `bytes */${length}`, 'content-length': 0 });
    return sink.end('');
  }
  const range = asked === 'whole' ? { start: 0, end: length - 1 } : asked;
  let begun = false;
  try {
    await writePieces(blobs, pieces, range, sink, () => {
      begun = true;
      sink.head(asked === 'whole' ? 200 : 206, {
        ...common,
        'content-type': type,
        'content-length': range.end - range.start + 1,
        'content-disposition': `attachment; filename="${name}"`,
        ...(asked === 'whole' ? {} : { 'content-range': `bytes ${range.start}-${range.end}/${length}` }),
      });
    });
  } catch (cause) {
    if (begun || !(cause instanceof BlobUnreachable)) throw cause;
    throw new GatewayError('service_unavailable', 'The file cannot be read at the moment', {
      retryAfterS: RETRY_S,
      cause,
    });
  }
}
