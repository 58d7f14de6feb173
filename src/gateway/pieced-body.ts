/**
 * The body of a request upstream that is made while it is sent. It needs hardly any memory beside the parts that it is
 * made of, however large it is. It can be sent several times, to one provider after another.
 */
export class PiecedBody implements Iterable<Uint8Array> {
  /** Size in bytes. */
  byteLength = 0;
  readonly #parts: (Uint8Array | PieceSource)[] = [];

  add(part: Uint8Array | PieceSource): this {
    this.#parts.push(part);
    this.byteLength += part.byteLength;
    return this;
  }

  /** Pieces of about 64 KiB. So a slow receiver makes no more than that wait in memory. */
  *[Symbol.iterator](): Iterator<Uint8Array> {
    for (const part of this.#parts) {
      if (!(part instanceof Uint8Array)) yield* part;
      else for (let at = 0; at < part.byteLength; at += PIECE_BYTES) yield part.subarray(at, at + PIECE_BYTES);
    }
  }
}

/** A part that is made while it is sent. It gives pieces with `byteLength` bytes together, each time anew. */
export interface PieceSource extends Iterable<Uint8Array> {
  readonly byteLength: number;
}

const PIECE_BYTES = 64 * 1024;

/** Size in bytes of the body of a request upstream. */
export const bodyBytes = (body: Uint8Array | string | PiecedBody): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
