/** The chunks in the bytes of a stream reader: whole events of one line each. */
export function chunksOf(bytes: Uint8Array): Record<string, unknown>[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
}
