import { createByteBuffer } from './byte-buffer.ts';

const NEWLINE = 10;
const EMPTY = Buffer.alloc(0);
const ENDING_BYTES_MAX = 1_024;

interface LinesOptions {
  /** The longest line in bytes, without its line end. */
  readonly bytesMax: number;
  /** Called with each line, without its line end (LF or CRLF). Empty lines are skipped. */
  readonly line: (text: string) => void;
  /** Called with the beginning of a longer line. The rest of that line is skipped. */
  readonly tooLong: (beginning: string) => void;
  /** Called with the last bytes of such a line, at most 1 KiB, when the line has ended. */
  readonly tooLongEnd?: (ending: string) => void;
}

/** Splits bytes into lines, in linear time and with at most one line in memory. */
export function createLines({ bytesMax, line, tooLong, tooLongEnd }: LinesOptions): {
  push(chunk: Buffer): void;
  end(): void;
} {
  // Bytes are copied. If a line arrives byte by byte, keeping the chunks would take a hundred bytes of memory per byte.
  const held = createByteBuffer(bytesMax, () => new Error(`a line is longer than ${bytesMax} bytes`));
  let skipping = false;
  let ending = EMPTY;

  const skip = (part: Buffer) => {
    if (!tooLongEnd) return;
    ending = Buffer.concat([ending, part.subarray(-ENDING_BYTES_MAX)]).subarray(-ENDING_BYTES_MAX);
  };
  const hold = (part: Buffer) => {
    if (part.length === 0) return;
    if (skipping) return skip(part);
    if (held.length + part.length <= bytesMax) return held.push(part, 0, part.length);
    const begun = Buffer.concat([held.bytes.subarray(0, held.length), part]);
    held.clear();
    skipping = true;
    skip(begun);
    tooLong(begun.toString('utf8', 0, bytesMax));
  };
  const give = (bytes: Buffer) => {
    const text = bytes.toString('utf8');
    const bare = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (bare !== '') line(bare);
  };
  const finish = (rest: Buffer) => {
    if (held.length === 0 && !skipping && rest.length <= bytesMax) return give(rest);
    hold(rest);
    if (skipping) tooLongEnd?.(ending.toString('utf8'));
    else give(held.bytes.subarray(0, held.length));
    held.clear();
    ending = EMPTY;
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
    /** Bytes after the last line end count as a line. */
    end: () => finish(EMPTY),
  };
}
