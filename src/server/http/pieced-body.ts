import { randomBytes } from 'node:crypto';
import { ownTurn } from '#wire';

/**
 * The body of a request upstream that is made while it is sent. It needs hardly any memory beside the parts that it is
 * made of, however large it is. It can be sent several times, to one provider after another.
 */
export class PiecedBody implements AsyncIterable<Uint8Array> {
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

const LINE = Buffer.from('\r\n');

/** A form (`multipart/form-data`, RFC 7578) whose files are not copied. */
export class FormBody {
  readonly contentType: string;
  readonly #boundary = `tollgate-${randomBytes(16).toString('hex')}`;
  readonly #body = new PiecedBody();

  constructor() {
    this.contentType = `multipart/form-data; boundary=${this.#boundary}`;
  }

  /** A text stays as it is. Any other value is written as JSON. */
  field(name: string, value: unknown): void {
    this.#part(`name="${nameOf(name)}"`, Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
  }

  /** `type`: the media type. */
  file(name: string, fileName: string, type: string, content: Uint8Array | PieceSource): void {
    this.#part(`name="${nameOf(name)}"; filename="${fileName}"\r\ncontent-type: ${type}`, content);
  }

  /** The whole form. Nothing can be added after it. */
  end(): PiecedBody {
    return this.#body.add(Buffer.from(`--${this.#boundary}--\r\n`));
  }

  #part(head: string, content: Uint8Array | PieceSource): void {
    this.#body
      .add(Buffer.from(`--${this.#boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`))
      .add(content)
      .add(LINE);
  }
}

/** As browsers write names: these three characters would end the name or the line. */
const nameOf = (name: string): string =>
  name.replaceAll(/[\r\n"]/g, (character) => (character === '"' ? '%22' : character === '\r' ? '%0D' : '%0A'));
