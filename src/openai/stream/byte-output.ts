/** Collects the output for one incoming chunk in one buffer. */
export interface ByteOutput {
  length: number;
  /** Estimated bytes of the next take, so that the buffer is allocated once. */
  expected: number;
  /** The buffer, with room for `bytes` more after `length`. */
  reserve(bytes: number): Buffer;
  write(bytes: Buffer): void;
  writeText(text: string): void;
  /** The bytes since the last take; null for none. */
  take(): Buffer | null;
}

export function createByteOutput(): ByteOutput {
  let buffer: Buffer | null = null;
  return {
    length: 0,
    expected: 0,
    reserve(bytes) {
      const needed = this.length + bytes;
      if (buffer === null) buffer = Buffer.allocUnsafe(Math.max(needed, this.expected));
      else if (buffer.length < needed) {
        const grown = Buffer.allocUnsafe(Math.max(needed, buffer.length * 2));
        buffer.copy(grown, 0, 0, this.length);
        buffer = grown;
      }
      return buffer;
    },
    write(bytes) {
      this.reserve(bytes.length).set(bytes, this.length);
      this.length += bytes.length;
    },
    writeText(text) {
      const bytes = Buffer.byteLength(text);
      this.length += this.reserve(bytes).write(text, this.length);
    },
    take() {
      if (buffer === null || this.length === 0) return null;
      const taken = buffer.subarray(0, this.length);
      buffer = null;
      this.length = 0;
      return taken;
    },
  };
}
