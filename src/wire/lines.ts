const NEWLINE = 10;
const EMPTY = Buffer.alloc(0);
const START_BYTES = 1_024;

export interface LinesOptions {
  /** Longest line in bytes, without its end. */
  readonly bytesMax: number;
  /** A line without its end, LF or CRLF. Empty lines are passed over. */
  readonly line: (text: string) => void;
  /** A line is longer: its beginning. The rest of it is passed over. */
  readonly tooLong: (beginning: string) => void;
}

/** Cuts bytes into lines, in linear time and with at most one line in memory. */
export function createLines({ bytesMax, line, tooLong }: LinesOptions): { push(chunk: Buffer): void; end(): void } {
  // A copy: chunks kept as they came would take a hundred bytes of memory for each byte of a line that comes byte
  // by byte.
  let held = EMPTY;
  let heldBytes = 0;
  let skipping = false;

  const hold = (part: Buffer) => {
    if (skipping || part.length === 0) return;
    const bytes = heldBytes + part.length;
    if (bytes > bytesMax) {
      const beginning = Buffer.concat([held.subarray(0, heldBytes), part]).toString('utf8', 0, bytesMax);
      clear();
      skipping = true;
      return tooLong(beginning);
    }
    if (bytes > held.length) {
      const larger = Buffer.allocUnsafe(Math.max(START_BYTES, 2 * held.length, bytes));
      held.copy(larger, 0, 0, heldBytes);
      held = larger;
    }
    part.copy(held, heldBytes);
    heldBytes = bytes;
  };
  const clear = () => {
    held = EMPTY;
    heldBytes = 0;
  };
  const give = (bytes: Buffer) => {
    const text = bytes.toString('utf8');
    const bare = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (bare !== '') line(bare);
  };
  const finish = (rest: Buffer) => {
    if (heldBytes === 0 && !skipping && rest.length <= bytesMax) return give(rest);
    hold(rest);
    if (!skipping) give(held.subarray(0, heldBytes));
    clear();
    skipping = false;
  };

  return {
    push(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        finish(chunk.subarray(from, at));
        from = at + 1;
      }
      hold(chunk.subarray(from));
    },
    /** What comes after the last line end is a line as well. */
    end: () => finish(EMPTY),
  };
}
