import { syntaxErrorAt } from './syntax-error.ts';

/* JSON.parse in pieces, so that a large text does not block all calls while it is parsed. */

/** Bytes that are parsed at once. The slowest text of this size, which has nothing but keys, takes about 10 ms. */
const PIECE_BYTES = 96 * 1024;
/** Bytes that are searched at once: about 5 ms. */
const SEARCHED_BYTES = 512 * 1024;
/** The fault of a longer piece, which is a single string, has the position at which the piece begins. */
const PLACED_CHARS_MAX = 256 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The text is not valid JSON. */
export class PieceError extends Error {
  /** The number of bytes before the fault. */
  readonly position: number;
  constructor(position: number, cause?: unknown) {
    super('a piece is not valid JSON', { cause });
    this.position = position;
  }
}

type Parse = (text: string) => unknown;
type Members = Record<string, unknown>;

/** An object or array that is open at the place of the search. */
interface Level {
  readonly isArray: boolean;
  /** The index after its bracket. */
  readonly open: number;
  /** The index after its last comma; `open` without one. */
  next: number;
  /** The index up to which its content is in `value`. */
  from: number;
  /** null until it is known to be larger than a piece. */
  value: Members | unknown[] | null;
  /** Its last member or element is in `value`, because that is larger than a piece itself. */
  hasLast: boolean;
}

/**
 * Parses a JSON text, whose depth is bounded, and yields between pieces of work. The value is that of `parse`
 * (JSON.parse, with a reviver that needs only the value and its source) for the whole text. Throws PieceError.
 */
export function* parsePieces(
  bytes: Buffer,
  parse: Parse,
  pieceBytes = PIECE_BYTES,
): Generator<void, unknown, undefined> {
  const pieces = new Pieces(bytes, parse);
  let searched = 0;
  let i = 0;
  for (; i < bytes.length && pieces.end === 0; i++) {
    switch (bytes[i]) {
      case QUOTE:
        for (i = stringEnd(bytes, i + 1, i + SEARCHED_BYTES); i < 0; i = stringEnd(bytes, ~i, ~i + SEARCHED_BYTES)) {
          if (~i >= bytes.length) throw new PieceError(bytes.length);
          yield;
        }
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        pieces.open(i);
        if (i - pieces.from > pieceBytes) yield* pieces.take();
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (pieces.close(i)) yield;
        break;
      case COMMA:
        pieces.comma(i);
        if (i - pieces.from > pieceBytes) yield* pieces.take();
        break;
      default:
    }
    if (i - searched > SEARCHED_BYTES) {
      searched = i;
      yield;
    }
  }
  return pieces.whole();
}

class Pieces {
  /** The index up to which all is parsed. */
  from = 0;
  /** The index after the whole value; 0 before it ends. */
  end = 0;
  readonly #bytes: Buffer;
  readonly #parse: Parse;
  readonly #levels: Level[] = [];
  #root: Level | null = null;

  constructor(bytes: Buffer, parse: Parse) {
    this.#bytes = bytes;
    this.#parse = parse;
  }

  open(at: number): void {
    if (this.#root === null && !isBlank(this.#text(0, at))) throw new PieceError(at);
    const isArray = this.#bytes[at] === OPEN_BRACKET;
    const level = { isArray, open: at + 1, next: at + 1, from: at + 1, value: null, hasLast: false };
    this.#levels.push(level);
    this.#root ??= level;
  }

  comma(at: number): void {
    const level = this.#levels.at(-1);
    if (level === undefined) throw new PieceError(at);
    level.next = at + 1;
    // Nothing may be beside the last one, which is parsed already.
    if (level.hasLast) this.#add(level, at, at + 1);
  }

  close(at: number): boolean {
    const level = this.#levels.pop();
    if (level === undefined || level.isArray !== (this.#bytes[at] === CLOSE_BRACKET)) throw new PieceError(at);
    if (this.#levels.length === 0) this.end = at + 1;
    if (level.value === null) return false;
    if (level.next > level.from) this.#add(level, level.next - 1, level.next);
    const isEmpty = level.next === level.open && !level.hasLast && isBlank(this.#text(level.from, at));
    if (!isEmpty) this.#add(level, at, at + 1);
    this.from = at + 1;
    const outer = this.#levels.at(-1);
    if (outer !== undefined) outer.from = at + 1;
    return true;
  }

  /** Parses what is complete of all open levels. Yields after each. */
  *take(): Generator<void, void, undefined> {
    for (const [index, level] of this.#levels.entries()) {
      if (level.value === null) {
        level.value = level.isArray ? [] : {};
        if (index > 0) this.#place(this.#levels[index - 1]!, level);
      }
      if (level.next > level.from) {
        this.#add(level, level.next - 1, level.next);
        yield;
      }
      this.from = level.from;
    }
  }

  whole(): unknown {
    const { length } = this.#bytes;
    if (this.#root?.value == null) return this.#parsed('', 0, length, '');
    if (this.end === 0) throw new PieceError(length);
    if (!isBlank(this.#text(this.end, length))) throw new PieceError(this.end);
    return this.#root.value;
  }

  /** Puts the content of a level up to `to` into its value. It goes on at `next`. */
  #add(level: Level, to: number, next: number): void {
    const { value, from, hasLast } = level;
    // Two commas beside each other would have an empty piece between them, which is valid by itself.
    if (isBlank(this.#text(from, to)) !== hasLast) throw new PieceError(from);
    if (!hasLast) {
      if (Array.isArray(value)) {
        for (const element of this.#parsed('[', from, to, ']') as readonly unknown[]) value.push(element);
      } else {
        const members = this.#parsed('{', from, to, '}') as Members;
        for (const name of Object.keys(members)) put(value!, name, members[name]);
      }
    }
    level.hasLast = false;
    level.from = next;
  }

  /** Puts a level that is still open into the one around it. */
  #place(outer: Level, level: Level): void {
    // Complete members before it are in the value already.
    const before = this.#text(outer.next, level.open - 1);
    if (Array.isArray(outer.value)) {
      if (!isBlank(before)) throw new PieceError(outer.next);
      outer.value.push(level.value);
    } else {
      // No name can end in a way that an empty text completes it, except by its colon.
      const [name] = Object.keys(this.#parsed('{', outer.next, level.open - 1, '""}') as Members);
      put(outer.value!, name!, level.value);
    }
    outer.hasLast = true;
  }

  #text(from: number, to: number): string {
    return this.#bytes.toString('utf8', from, to);
  }

  #parsed(before: string, from: number, to: number, after: string): unknown {
    const text = before + this.#text(from, to) + after;
    try {
      return this.#parse(text);
    } catch (error) {
      const at = text.length > PLACED_CHARS_MAX ? 0 : syntaxErrorAt(text) - before.length;
      const position = from + Buffer.byteLength(text.slice(before.length, before.length + Math.max(0, at)));
      throw new PieceError(Math.min(to, position), error);
    }
  }
}

const isBlank = (text: string): boolean => !/[^ \t\n\r]/.test(text);

/** As JSON.parse does it: `__proto__` becomes a property like others. */
function put(members: Members, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(members, name, { value, configurable: true, enumerable: true, writable: true });
  else members[name] = value;
}

/**
 * From this length on, the native search finds the end of a string. For shorter strings the loop is faster than the
 * call.
 */
const SHORT_STRING = 64;

/**
 * The index of the quote that ends a string. `from` is inside the string and not directly after a backslash. If there
 * is no such quote up to about `until`, the result is the bitwise complement of a position from which to continue.
 */
export function stringEnd(buffer: Buffer, from: number, until: number): number {
  const { length } = buffer;
  let i = from;
  for (;;) {
    const near = Math.min(i + SHORT_STRING, length);
    for (; i < near; i++) {
      const byte = buffer[i];
      if (byte === QUOTE) return i;
      if (byte === BACKSLASH) i++;
    }
    if (i >= length) return ~length;
    if (i >= until) return ~i;
    // For a long string, such as an image, the native search is faster. The character at `i` is not escaped, so
    // backslashes before `i` do not count.
    const quote = buffer.indexOf(QUOTE, i);
    if (quote === -1) return ~length;
    let backslashes = 0;
    while (quote - 1 - backslashes >= i && buffer[quote - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote;
    i = quote + 1;
  }
}
