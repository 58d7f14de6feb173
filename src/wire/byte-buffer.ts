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
