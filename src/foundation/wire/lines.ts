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

/** Collects bytes over several chunks of a stream. */
interface ByteBuffer {
  /** Valid up to `length`. A larger buffer replaces it when it grows. */
  readonly bytes: Buffer;
  readonly length: number;
  /** Appends a range of `source`. Throws the error of `tooLong` above `bytesMax`. */
  push(source: Buffer, start: number, end: number): void;
  clear(): void;
}

/** `clear` keeps memory up to this size for the next bytes. */
const KEPT_BYTES_MAX = 16 * 1024;

/** The buffer doubles when it grows, so many small pieces cost about as much as one large piece. */
export function createByteBuffer(bytesMax: number, tooLong: () => Error): ByteBuffer {
  const buffer = {
    bytes: Buffer.alloc(0),
    length: 0,
    push(source: Buffer, start: number, end: number) {
      const length = buffer.length + end - start;
      if (length > bytesMax) throw tooLong();
      if (length > buffer.bytes.length) {
        const grown = Buffer.allocUnsafeSlow(Math.max(512, length, buffer.bytes.length * 2));
        buffer.bytes.copy(grown, 0, 0, buffer.length);
        buffer.bytes = grown;
      }
      source.copy(buffer.bytes, buffer.length, start, end);
      buffer.length = length;
    },
    clear() {
      buffer.length = 0;
      if (buffer.bytes.length > KEPT_BYTES_MAX) buffer.bytes = Buffer.alloc(0);
    },
  };
  return buffer;
}
