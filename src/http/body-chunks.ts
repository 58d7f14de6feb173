import { GatewayError } from '#errors';

/** This many chunks may have any size. */
const CHUNKS_FREE = 4_096;
/** With more chunks, their average size must be at least this. */
const CHUNK_BYTES_MIN = 64;
/** A chunk takes as long as the reading of so many bytes, beside its own. */
export const CHUNK_WEIGHT = 256;

/**
 * The chunks in which a body arrives (RFC 9112, section 7.1). Each takes about a microsecond and a hundred bytes of
 * memory, whatever its size. A sender needs six bytes for a chunk of one, so the same bytes cost twenty times as much
 * as in large chunks: such a body is refused, wherever it is read.
 */
export class BodyChunks {
  /** The number of chunks so far. */
  count = 0;
  #bytes = 0;

  /** Counts one more. Returns true if there are many, and they are too small. */
  add(chunk: Uint8Array): boolean {
    this.count += 1;
    this.#bytes += chunk.byteLength;
    return this.count > CHUNKS_FREE && this.#bytes < this.count * CHUNK_BYTES_MIN;
  }
}

/** The error of a body for which `add` returned true. */
export const chunksTooSmall = (): GatewayError =>
  new GatewayError(
    'invalid_request',
    `The body comes in chunks of less than ${CHUNK_BYTES_MIN} bytes: send larger ones, or the whole with content-length`,
  );
