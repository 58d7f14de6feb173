import type { PieceSource } from '#gateway';

/**
 * The bytes of an input, as the request brought them: the file itself, or its base64. They stay in the memory of the
 * request's body. The other form is made while it is sent.
 */
export class InputBytes {
  /** The file. */
  readonly file: PieceSource;
  /** The base64 of the file, as ASCII. */
  readonly base64: PieceSource;

  private constructor(file: PieceSource, base64: PieceSource) {
    this.file = file;
    this.base64 = base64;
  }

  static ofFile(bytes: Buffer): InputBytes {
    const length = Math.ceil(bytes.byteLength / 3) * 4;
    return new InputBytes(new Converted(bytes, bytes.byteLength), new Converted(bytes, length, encode, FILE_PIECE));
  }

  /** `base64`: complete and valid, with padding. */
  static ofBase64(base64: Buffer): InputBytes {
    const padding = base64.at(-1) !== PADDING ? 0 : base64.at(-2) === PADDING ? 2 : 1;
    const length = (base64.byteLength / 4) * 3 - padding;
    return new InputBytes(
      new Converted(base64, length, decode, BASE64_PIECE),
      new Converted(base64, base64.byteLength),
    );
  }
}

const PADDING = 0x3d;
/** Bytes of a file that are encoded at once, and of base64 that are decoded at once: whole groups of 3 and 4. */
const FILE_PIECE = 48 * 1024;
const BASE64_PIECE = 64 * 1024;
const encode = (piece: Buffer) => Buffer.from(piece.toString('base64'), 'latin1');
const decode = (piece: Buffer) => Buffer.from(piece.toString('latin1'), 'base64');
const same = (piece: Buffer) => piece;

class Converted implements PieceSource {
  readonly byteLength: number;
  readonly #from: Buffer;
  readonly #convert: (piece: Buffer) => Uint8Array;
  readonly #pieceBytes: number;

  constructor(
    from: Buffer,
    byteLength: number,
    convert: (piece: Buffer) => Uint8Array = same,
    pieceBytes = FILE_PIECE,
  ) {
    this.byteLength = byteLength;
    this.#from = from;
    this.#convert = convert;
    this.#pieceBytes = pieceBytes;
  }

  *[Symbol.iterator](): Iterator<Uint8Array> {
    const from = this.#from;
    for (let at = 0; at < from.byteLength; at += this.#pieceBytes)
      yield this.#convert(from.subarray(at, at + this.#pieceBytes));
  }
}
