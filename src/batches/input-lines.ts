const NEWLINE = 10;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/** A line of a file. */
interface InputLine {
  /** Its number in the file, from 1. */
  readonly n: number;
  /** null if it is longer than a line may be. */
  readonly bytes: Buffer | null;
}

/** The lines of a file without empty ones. At most one line and one piece of the file are in memory. */
export async function* linesOf(pieces: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<InputLine> {
  let n = 0;
  let held: Buffer[] = [];
  let heldBytes = 0;
  const lineWith = (rest: Buffer): InputLine => {
    n += 1;
    const bytes = heldBytes + rest.byteLength;
    const line = bytes > bytesMax ? null : heldBytes === 0 ? rest : Buffer.concat([...held, rest], bytes);
    held = [];
    heldBytes = 0;
    return { n, bytes: line };
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
    if (heldBytes > bytesMax) held = [];
    else if (rest.byteLength > 0) held.push(rest);
  }
  if (heldBytes === 0) return;
  const last = lineWith(Buffer.alloc(0));
  if (!isBlank(last)) yield last;
}

const isBlank = ({ bytes }: InputLine): boolean => bytes !== null && bytes.every((byte) => SPACES.has(byte));
