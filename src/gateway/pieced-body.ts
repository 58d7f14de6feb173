import { ownTurn } from '#wire';

/**
 * The body of a request upstream that is made while it is sent. It needs hardly any memory beside the parts that it is
 * made of, however large it is. It can be sent several times, to one provider after another.
 */
export class PiecedBody implements AsyncIterable<Uint8Array> {
  /** Size in bytes. */
  byteLength = 0;
  readonly #parts: (Uint8Array | PieceSource)[] = [];

  add(part: Uint8Array | PieceSource): this {
    this.#parts.push(part);
    this.byteLength += part.byteLength;
    return this;
  }

  /**
   * Pieces of about 64 KiB. So a slow receiver makes no more than that wait in memory. A fast one gets some of them in
   * each turn of the event loop, because a socket takes megabytes at once, and other calls would wait as long.
   */
  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array, void, undefined> {
    let inTurn = 0;
    for (const piece of this.#pieces()) {
      yield piece;
      inTurn += piece.byteLength;
      if (inTurn < TURN_BYTES) continue;
      inTurn = 0;
      // oxlint-disable-next-line no-await-in-loop -- one turn after the other
      await ownTurn();
    }
  }

  *#pieces(): Generator<Uint8Array, void, undefined> {
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
/** Bytes in one turn of the event loop. To make and write as many takes about half a millisecond. */
const TURN_BYTES = 256 * 1024;

/** Size in bytes of the body of a request upstream. */
export const bodyBytes = (body: Uint8Array | string | PiecedBody): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
