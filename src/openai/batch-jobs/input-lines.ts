const NEWLINE = 10;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/** A line of a file. `n`: its number, from 1. */
type InputLine = { readonly n: number } & (
  | { readonly bytes: Buffer }
  /** It is longer than a line may be. */
  | LongLine
);

/** The ends of a line of `size` bytes whose rest is not kept. */
export interface LongLine {
  readonly bytes: null;
  readonly size: number;
  readonly start: Buffer;
  readonly end: Buffer;
}

/** Bytes of the start and of the end of a line that is too long. A usage at its end has less than that. */
const START_BYTES = 1_024;
const END_BYTES = 16 * 1_024;

/** The lines of a file without empty ones. At most one line and one piece of the file are in memory. */
export async function* linesOf(pieces: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<InputLine> {
  let n = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let long: Pick<LongLine, 'start' | 'end'> | null = null;
  const lineWith = (rest: Buffer): InputLine => {
    n += 1;
    const size = heldBytes + rest.byteLength;
    const all = heldBytes === 0 ? [rest] : [...held, rest];
    const before = long;
    held = [];
    heldBytes = 0;
    long = null;
    if (size > bytesMax) return { n, bytes: null, size, ...endsOf(all, before) };
    return { n, bytes: all.length === 1 ? rest : Buffer.concat(all, size) };
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      const line = lineWith(piece.subarray(from, end));
      from = end + 1;
      if (!isBlank(line)) yield line;
    }
    const rest = piece.subarray(from);
    heldBytes += rest.byteLength;
    if (rest.byteLength > 0) held.push(rest);
    if (heldBytes > bytesMax) {
      long = endsOf(held, long);
      held = [];
    }
  }
  if (heldBytes === 0) return;
  const last = lineWith(Buffer.alloc(0));
  if (!isBlank(last)) yield last;
}

const endsOf = (pieces: readonly Buffer[], before: Pick<LongLine, 'start' | 'end'> | null) => ({
  start: before?.start ?? startOf(pieces),
  end: endOf(before === null ? pieces : [before.end, ...pieces]),
});

const endOf = (pieces: readonly Buffer[]): Buffer =>
  Buffer.from(Buffer.concat(pieces.map((piece) => piece.subarray(-END_BYTES))).subarray(-END_BYTES));

/** A copy, so that the rest of a piece can be freed. */
function startOf(pieces: readonly Buffer[]): Buffer {
  const starts: Buffer[] = [];
  let bytesLeft = START_BYTES;
  for (const piece of pieces) {
    if (bytesLeft === 0) break;
    starts.push(piece.subarray(0, bytesLeft));
    bytesLeft -= starts.at(-1)!.byteLength;
  }
  return Buffer.concat(starts);
}

/** A line that is kept in no other way than one that is too long. */
export const asLong = (bytes: Buffer): LongLine => ({ bytes: null, size: bytes.byteLength, ...endsOf([bytes], null) });

const isBlank = ({ bytes }: InputLine): boolean => bytes !== null && bytes.every((byte) => SPACES.has(byte));
