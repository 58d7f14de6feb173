/**
 * Joins all chunks that arrived together, so that their events are read at once. The result is valid until the next
 * call.
 */
export function joined(chunks: readonly Uint8Array[]): Buffer {
  const only = chunks[0];
  if (chunks.length === 1 && only) return asBuffer(only);
  let length = 0;
  for (const chunk of chunks) {
    if (length + chunk.byteLength > together.length) return Buffer.concat(chunks);
    together.set(chunk, length);
    length += chunk.byteLength;
  }
  return together.subarray(0, length);
}

/** All streams share it, because nothing of it is kept. Most of what arrives in one turn of the event loop fits. */
const together = Buffer.allocUnsafeSlow(128 * 1024);

const asBuffer = (bytes: Uint8Array) =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
