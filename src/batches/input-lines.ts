const NEWLINE = 10;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/** A line of a file. `n`: its number, from 1. */
type InputLine = { readonly n: number } & (
  | { readonly bytes: Buffer }
  /** It is longer than a line may be. `size`: its bytes, of which `start` has the first. */
  | { readonly bytes: null; readonly size: number; readonly start: Buffer }
);

/** Bytes of the start of a line that is too long. */
const START_BYTES = 1_024;

/** The lines of a file without empty ones. At most one line and one piece of the file are in memory. */
export async function* linesOf(pieces: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<InputLine> {
  let n = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  const lineWith = (rest: Buffer): InputLine => {
    n += 1;
    const size = heldBytes + rest.byteLength;
    const all = heldBytes === 0 ? [rest] : [...held, rest];
    held = [];
    heldBytes = 0;
    if (size > bytesMax) return { n, bytes: null, size, start: startOf(all) };
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
    if (heldBytes > bytesMax) held = [startOf(held)];
  }
  if (heldBytes === 0) return;
  const last = lineWith(Buffer.alloc(0));
  if (!isBlank(last)) yield last;
}

/** A copy, so that the rest of a piece can be freed. */
function startOf(pieces: readonly Buffer[]): Buffer {
  const starts: Buffer[] = [];
  let left = START_BYTES;
  for (const piece of pieces) {
    if (left === 0) break;
    starts.push(piece.subarray(0, left));
    left -= starts.at(-1)!.byteLength;
  }
  return Buffer.concat(starts);
}

const isBlank = ({ bytes }: InputLine): boolean => bytes !== null && bytes.every((byte) => SPACES.has(byte));
