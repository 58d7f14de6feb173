import { randomUUID } from 'node:crypto';

/**
 * A JSON text in which marks replace large strings. It can be edited like any text, and `large.piecesOf` gives its
 * bytes.
 */
export interface MarkedText {
  readonly text: string;
  readonly large: LargeStrings;
}

const MARK = /large-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/**
 * The large strings of one answer. As part of the text, 40 MB of base64 would be copied, searched and encoded within
 * single turns of the event loop. Marks are random, so that no other text looks like a mark.
 */
export class LargeStrings {
  readonly #bytes = new Map<string, Uint8Array>();

  /** Stores the bytes between the quotes of a JSON string. Returns the mark that replaces them in the text. */
  mark(bytes: Uint8Array): string {
    const mark = `large-${randomUUID()}`;
    this.#bytes.set(mark, bytes);
    return mark;
  }

  /** Whether a text has a mark of these strings. */
  isIn(text: string): boolean {
    return this.#bytes.size > 0 && this.#marksIn(text).length > 0;
  }

  /** Frees the strings of a text that was written and is not needed again. */
  forget(text: string): void {
    if (this.#bytes.size > 0) for (const { 0: mark } of this.#marksIn(text)) this.#bytes.delete(mark);
  }

  /** The bytes of a text, with each mark replaced by its string. The strings are not copied. */
  piecesOf(text: string): readonly Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let from = 0;
    for (const { 0: mark, index } of this.#marksIn(text)) {
      pieces.push(Buffer.from(text.slice(from, index)), this.#bytes.get(mark)!);
      from = index + mark.length;
    }
    pieces.push(Buffer.from(text.slice(from)));
    return pieces;
  }

  #marksIn(text: string): RegExpExecArray[] {
    return [...text.matchAll(MARK)].filter(({ 0: mark }) => this.#bytes.has(mark));
  }
}

/** The number of bytes of all pieces. */
export const lengthOf = (pieces: readonly Uint8Array[]): number =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** The bytes of a text, as several pieces if it has marks. */
export const piecesOfText = (said: string | MarkedText): readonly Uint8Array[] =>
  typeof said === 'string' ? [Buffer.from(said)] : said.large.piecesOf(said.text);

/** All pieces as one buffer; null if they are longer than `bytesMax`. A single piece is not copied. */
export function wholePiece(pieces: readonly Uint8Array[], bytesMax: number): Buffer | null {
  const [first, ...more] = pieces;
  if (lengthOf(pieces) > bytesMax) return null;
  return first && more.length === 0
    ? Buffer.from(first.buffer, first.byteOffset, first.byteLength)
    : Buffer.concat(pieces);
}

/** Edits a text. `edit` must keep its marks. */
export function editText<S extends string | MarkedText>(said: S, edit: (text: string) => string): S {
  const marked: string | MarkedText = said;
  return (typeof marked === 'string' ? edit(marked) : { ...marked, text: edit(marked.text) }) as S;
}
