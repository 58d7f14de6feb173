import { Transform, type Readable } from 'node:stream';
import { GatewayError } from '#wire';

const GATHERED_BYTES = 64 * 1024;
/** This many chunks may have any size. */
const CHUNKS_FREE = 4_096;
/** With more chunks, their average size must be at least this. */
const CHUNK_BYTES_MIN = 64;

/**
 * Gives the same bytes in pieces of 64 KiB. Each chunk of a chunked body takes about a hundred bytes of memory,
 * whatever its size, until the whole body has arrived: 10 MiB in chunks of one byte would take a gigabyte. Each chunk
 * also takes a microsecond to read, so a body of very small chunks ends with GatewayError `invalid_request`.
 */
export function gatherChunks(body: Readable): Readable {
  let piece = Buffer.alloc(0);
  let filled = 0;
  let chunks = 0;
  let bytes = 0;
  const gathered = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.byteLength;
      if (++chunks > CHUNKS_FREE && bytes < chunks * CHUNK_BYTES_MIN) {
        // The rest of the body is not read, and the answer closes the connection.
        body.unpipe(gathered);
        body.pause();
        return done(TOO_SMALL());
      }
      let at = 0;
      while (at < chunk.byteLength) {
        if (filled === piece.byteLength) {
          if (filled > 0) this.push(piece);
          filled = 0;
          piece = Buffer.allocUnsafeSlow(Math.min(GATHERED_BYTES, Math.max(1024, 2 * piece.byteLength)));
        }
        const copied = chunk.copy(piece, filled, at);
        filled += copied;
        at += copied;
      }
      done();
    },
    flush(done) {
      done(null, filled === 0 ? undefined : piece.subarray(0, filled));
    },
  });
  body.once('error', (error) => gathered.destroy(error));
  return body.pipe(gathered);
}

const TOO_SMALL = () =>
  new GatewayError(
    'invalid_request',
    `The body comes in chunks of less than ${CHUNK_BYTES_MIN} bytes: send larger ones, or the whole with content-length`,
  );
