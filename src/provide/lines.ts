const NEWLINE = 10;

export interface LinesOptions {
  /** Longest line in bytes, without its end. */
  readonly bytesMax: number;
  /** A line without its end. Empty lines are passed over. */
  readonly line: (text: string) => void;
  /** A line is longer: its beginning. The rest of it is passed over. */
  readonly tooLong: (beginning: string) => void;
}

/** Cuts bytes into lines, in linear time and with at most one line in memory. */
export function createLines({ bytesMax, line, tooLong }: LinesOptions): { push(chunk: Buffer): void; end(): void } {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let skipping = false;

  const hold = (part: Buffer) => {
    if (skipping || part.length === 0) return;
    held.push(part);
    heldBytes += part.length;
    if (heldBytes <= bytesMax) return;
    const beginning = Buffer.concat(held).toString('utf8', 0, bytesMax);
    clear();
    skipping = true;
    tooLong(beginning);
  };
  const clear = () => {
    held = [];
    heldBytes = 0;
  };
  const finish = () => {
    const text = held.length === 1 ? held[0]!.toString('utf8') : Buffer.concat(held).toString('utf8');
    clear();
    const bare = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (bare !== '' && !skipping) line(bare);
    skipping = false;
  };

  return {
    push(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        hold(chunk.subarray(from, at));
        finish();
        from = at + 1;
      }
      hold(chunk.subarray(from));
    },
    /** What comes after the last line end is a line as well. */
    end: finish,
  };
}
