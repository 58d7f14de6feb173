import { randomUUID } from 'node:crypto';

/**
 * A JSON text with marks in the place of strings that are too large to be part of it. It is edited as any text, and
 * written with `large.piecesOf`.
 */
export interface MarkedText {
  readonly text: string;
  readonly large: LargeStrings;
}

const MARK = /large-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/**
 * The strings of one answer that are too large to be part of its text: as one text, 40 MB of base64 would be copied,
 * searched and encoded in single turns of the event loop. A mark is random, so that nobody's words are taken for one.
 */
export class LargeStrings {
  readonly #bytes = new Map<string, Uint8Array>();

  /** Keeps what stands between the quotes of a JSON string. Returns the mark that stands for it in a text. */
  mark(bytes: Uint8Array): string {
    const mark = `large-${randomUUID()}`;
    this.#bytes.set(mark, bytes);
    return mark;
  }

  /** The bytes of a text, with the strings in the place of their marks. The strings are not copied. */
  piecesOf(text: string): readonly Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let from = 0;
    for (const { 0: mark, index } of text.matchAll(MARK)) {
      const bytes = this.#bytes.get(mark);
      if (bytes === undefined) continue;
      pieces.push(Buffer.from(text.slice(from, index)), bytes);
      from = index + mark.length;
    }
    pieces.push(Buffer.from(text.slice(from)));
    return pieces;
  }
}

/** Bytes of all pieces. */
export const lengthOf = (pieces: readonly Uint8Array[]): number =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** The bytes of a text, in pieces where it has marks. */
export const piecesOfText = (said: string | MarkedText): readonly Uint8Array[] =>
  typeof said === 'string' ? [Buffer.from(said)] : said.large.piecesOf(said.text);

/** All pieces in one; null where they have more than `bytesMax`. A single one is not copied. */
export function wholePiece(pieces: readonly Uint8Array[], bytesMax: number): Buffer | null {
  const [first, ...more] = pieces;
  if (lengthOf(pieces) > bytesMax) return null;
  return first && more.length === 0
    ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
    : Buffer.concat(pieces);
}

/** Edits a text. Its marks stay what they are. */
export function editText<S extends string | MarkedText>(said: S, edit: (text: string) => string): S {
  const marked: string | MarkedText = said;
  return (typeof marked === 'string' ? edit(marked) : { ...marked, text: edit(marked.text) }) as S;
}
